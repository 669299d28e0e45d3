# Behind PRIVATEST_TEST_FLAKY_URL each request reaches the service, but its first answer is lost,
# and its second one is a proxy's page.
test_that("a request whose answer was lost is charged once", {
  data <- people(url = "PRIVATEST_TEST_FLAKY_URL")
  before <- spent(data$connection)
  result <- pt_paired(data, "visits", "age", epsilon = 0.0625, method = "sign")
  expect_equal(spent(data$connection), before + 0.0625)
  again <- pt_paired(people(), "visits", "age", epsilon = 0.0625, method = "sign")
  expect_true(again$recorded)
  expect_equal(again$p.value, result$p.value)
})
