test_of <- function(..., estimates = NULL, parameters = list(alternative = "two-sided")) {
  document <- list(
    pvalue = 0.02, statistic = NULL, reject = TRUE, alpha = 0.05, epsilon = 0.5, delta = 0,
    method = "a test", null_hypothesis = "nothing is there", sizes = list(n = 20, m = 16),
    parameters = parameters, guarantee = "Privacy spent: epsilon = 0.5.",
    verdict = "We reject the hypothesis that nothing is there at level 0.05.",
    compared = "age: plan = basic against plan = plus", dataset = "people", recorded = FALSE
  )
  if (!is.null(estimates)) document$estimates <- estimates
  more <- list(...)
  document[names(more)] <- more
  result_of(document)
}

test_that("a test prints as R's own, with the sentence on privacy", {
  found <- test_of(statistic = -0.3, estimates = list(
    mean_x = 8, mean_y = 24, difference = -16, lower = NULL, upper = 63
  ), parameters = list(alternative = "less"))
  expect_s3_class(found, c("privatest_htest", "htest"), exact = TRUE)
  expect_equal(found$p.value, 0.02)
  expect_equal(found$statistic, c(statistic = -0.3))
  expect_equal(found$conf.int, structure(c(-Inf, 63), conf.level = 0.95))
  expect_equal(found$null.value, c("difference in means" = 0))
  words <- shown(found)
  expect_match(words, "data:  age: plan = basic against plan = plus")
  expect_match(words, "statistic = -0.3, p-value = 0.02")
  expect_match(words, "true difference in means is less than 0")
  expect_match(words, "95 percent confidence interval:\n -Inf +63")
  expect_match(words, "We reject the hypothesis")
  expect_match(words, "Privacy spent: epsilon = 0.5.")
  expect_named(as.data.frame(found), c(
    "estimate", "estimate1", "estimate2", "statistic", "p.value", "conf.low", "conf.high",
    "method", "alternative"
  ))
  expect_equal(as.data.frame(found)$estimate, -16)
})

test_that("public parameters are not printed as degrees of freedom", {
  found <- test_of(parameters = list(n_permutations = 999))
  expect_null(found$parameter)
  expect_null(found$estimate)
  expect_false(grepl("999", shown(found)))
})

test_that("a decision has no p-value", {
  document <- list(
    reject = FALSE, alpha = 0.05, epsilon = 0.5, delta = 0, method = "a test",
    null_hypothesis = "nothing is there", sizes = list(N = 40), parameters = list()
  )
  found <- result_of(document)
  expect_null(found$p.value)
  expect_true(is.na(as.data.frame(found)$p.value))
  expect_false(glanced(found)$reject)
})

test_that("several estimates are several rows", {
  found <- test_of(
    estimates = list(mean = list(1, 2, 3), lower = list(0, 0, NULL), upper = list(4, 5, NULL)),
    parameters = list(group_names = list("a", "b", "c"))
  )
  frame <- as.data.frame(found)
  expect_equal(frame$term, c("a", "b", "c"))
  expect_equal(frame$conf.high, c(4, 5, Inf))
  expect_equal(frame$conf.low, c(0, 0, -Inf))
  expect_null(found$conf.int)
})

test_that("an equivalence has both its bounds", {
  found <- test_of(
    estimates = list(mean_x = 1, mean_y = 2, difference = -1, lower = -2, upper = 1),
    parameters = list(low = -5, high = 5, interval_level = 0.9)
  )
  expect_equal(unname(found$null.value), c(-5, 5))
  expect_equal(attr(found$conf.int, "conf.level"), 0.9)
  expect_match(shown(found), "equivalence")
})

test_that("a rehearsal and a record say so", {
  expect_match(shown(test_of(made_up_rows = TRUE)), "says nothing about the data")
  expect_match(shown(test_of(recorded = TRUE)), "from the record, at no cost")
})

test_that("it says what noise does to the p-value and to the interval", {
  note <- "For the p-value, privacy costs little. Noise makes the interval 12 times as wide."
  expect_match(shown(test_of(noise_note = note)), "interval\\s+12\\s+times")
})

test_that("means and quantiles are estimates", {
  mean <- result_of(list(
    mean = list(1, 2), lower = list(0, 1), upper = list(2, 3), columns = list("age", "visits"),
    covariance = list(list(1, 0), list(0, 1)), region_shape = list(), confidence = 0.95,
    epsilon = 0.5, delta = 1e-6, n = 40, guarantee = "Privacy spent."
  ))
  expect_named(as.data.frame(mean), c("term", "estimate", "conf.low", "conf.high"))
  expect_equal(dim(mean$covariance), c(2, 2))
  expect_match(shown(mean), "Private mean, 95 percent confidence")
  quantile <- result_of(list(
    quantile = 21, lower = NULL, upper = 80, q = 0.5, confidence = 0.95, epsilon = 0.5, delta = 0,
    n = 40, column = "visits", guarantee = "Privacy spent."
  ))
  expect_equal(as.data.frame(quantile)$conf.low, -Inf)
  expect_match(shown(quantile), "Private quantile \\(q = 0.5\\)")
})

test_that("what a newer service says is not guessed", {
  expect_error(result_of(list(something = 1)), "update", class = "privatest_service_error")
})

test_that("tidy and glance have broom's names", {
  skip_if_not_installed("generics")
  found <- test_of(estimates = list(tau = 0.9, lower = 0.3, upper = 1))
  expect_equal(generics::tidy(found), as.data.frame(found))
  expect_named(generics::glance(found), c(
    "statistic", "p.value", "reject", "alpha", "nobs", "epsilon", "delta", "method"
  ))
  expect_equal(generics::glance(found)$nobs, 36)
})
