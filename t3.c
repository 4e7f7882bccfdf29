void* json_tokener_parse(const char*); void* f(const char*a){return json_tokener_parse(a);}
