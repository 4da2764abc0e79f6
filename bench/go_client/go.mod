module watchkeeper/bench/go_client

go 1.20

require github.com/samuel/go-zookeeper v0.0.0-20190923202752-2cc03de413da
