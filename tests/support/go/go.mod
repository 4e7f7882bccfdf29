module small

go 1.19
