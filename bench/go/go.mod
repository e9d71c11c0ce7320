module sublet/bench

go 1.21
