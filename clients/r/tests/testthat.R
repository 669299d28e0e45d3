library(testthat)
library(privatest)

test_check("privatest")
