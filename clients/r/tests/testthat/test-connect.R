test_that("a token goes only where it may", {
  refused <- c(
    "http://curator.example", "ftp://curator.example", "curator.example", "https://",
    "https://ada:pw@curator.example", "http://localhost@evil.example", "https://a.example?x=1",
    "http://localhost\\@evil.example", "http://127.0.0.1.evil.example", "https://a b"
  )
  for (url in refused) {
    expect_error(pt_connect(url, "pt_secret"), class = "privatest_parameter_error")
  }
  for (url in c("https://curator.example/x", "http://localhost:80", "http://[::1]:8000/")) {
    expect_s3_class(pt_connect(url, "pt_secret"), "privatest_connection")
  }
})

test_that("a token is one word, given or in the environment", {
  expect_error(pt_connect("https://a.example", ""), "PRIVATEST_TOKEN")
  expect_error(pt_connect("https://a.example", "two words"), "one word")
  expect_error(pt_connect("https://a.example", "x\r\nHost: evil"), "one word")
  expect_error(pt_connect("https://a.example", "x", timeout = 0), "timeout")
})

test_that("nothing shows the token", {
  connection <- pt_connect("http://127.0.0.1:9", "pt_secret", timeout = 5)
  expect_equal(shown(connection), "<client of http://127.0.0.1:9>")
  words <- c(
    capture.output(str(connection)), capture.output(dput(connection)), format(connection),
    capture.output(print(unclass(connection)))
  )
  failed <- tryCatch(connection$send("GET", "/me"), error = identity) # nobody is there
  words <- c(words, conditionMessage(failed), capture.output(str(failed)))
  words <- c(words, capture.output(print(httr2::last_request())))
  expect_s3_class(failed, "privatest_lost")
  expect_null(conditionCall(failed))
  expect_false(any(grepl("pt_secret", words)))
})
