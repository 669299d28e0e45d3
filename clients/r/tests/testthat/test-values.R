test_that("numbers are sent as they are", {
  for (number in c(0.1, 1 / 3, 1e-6, 123456789.123, 2^53, -5, pi, 1e300, 5e-324)) {
    expect_identical(as.numeric(shortest(number)), number)
  }
  expect_equal(as.character(shortest(0.1)), "0.1")
  expect_equal(as.character(shortest(0.5)), "0.5")
})

test_that("a request is the document that the service reads", {
  request <- pt_request("people",
    question = "two-sample", method = "ks", columns = "visits", group = "plan", epsilon = 0.1,
    groups = factor(c("basic", "plus")), alternative = "two.sided", where = c(region = "north"),
    locations = matrix(c(1, 2, 3, 4.5), 2), q = list(0.5), flag = TRUE, left_out = NULL
  )
  expect_equal(to_json(unclass(request)), paste0(
    '{"dataset":"people","question":"two-sample","method":"ks","columns":["visits"],',
    '"group":"plan","epsilon":0.1,"groups":["basic","plus"],"alternative":"two-sided",',
    '"where":{"region":"north"},"locations":[[1,3],[2,4.5]],"q":[0.5],"flag":true}'
  ))
  expect_match(shown(request), "two-sample")
})

test_that("what cannot be sent is refused", {
  for (value in list(NA, Inf, NaN, mean, as.Date("2026-01-01") - Sys.Date(), character())) {
    expect_error(
      pt_request("people", epsilon = value),
      "epsilon must be text, numbers|each value must",
      class = "privatest_parameter_error"
    )
  }
  expect_error(pt_request("people", 0.5), "must have its name")
  expect_error(pt_two_sample("people", "visits", "plan", epsilon = 1), "pt_dataset")
})

test_that("expected shares are written as a request writes them", {
  expect_equal(shares_text(c(basic = 0.5, plus = 0.5)), "basic=0.5,plus=0.5")
  expect_equal(shares_text("equal"), "equal")
  expect_error(shares_text(c(0.5, 0.5)), "named by categories")
  expect_error(shares_text(c("a,b" = 1)), "comma")
})
