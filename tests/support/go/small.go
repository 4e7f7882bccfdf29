// SPDX-License-Identifier: MIT
// A Go library for C programs: GoWork computes on four goroutines, whose stacks have 2 KiB.
package main

import "C"

//export GoWork
func GoWork(n C.int) C.int {
	done := make(chan int)
	for i := 0; i < 4; i++ {
		go func(k int) {
			x := k
			for j := 0; j < int(n); j++ {
				x = x*1664525 + 1013904223
			}
			done <- x
		}(i)
	}
	sum := 0
	for i := 0; i < 4; i++ {
		sum += <-done
	}
	return C.int(sum)
}

func main() {}
