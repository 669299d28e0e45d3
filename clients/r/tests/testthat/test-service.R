test_that("data sets are described in public terms", {
  connection <- service()
  expect_equal(pt_me(connection), list(name = "ada", scopes = "ask"))
  expect_equal(pt_datasets(connection)$name, "people")
  expect_match(shown(people()), "40 rows.*visits +numbers from 0 to 80.*region +north, south, west")
  expect_true(all(c("mmd", "hsic", "wilcoxon") %in% pt_questions(connection)$method))
  expect_error(pt_dataset(connection, "nobody's"), class = "privatest_service_error")
})

test_that("a request is priced, rehearsed, charged once and kept", {
  data <- people()
  connection <- data$connection
  ask <- function(...) {
    pt_two_sample(data, "visits", group = "plan", method = "ks", epsilon = 0.0625, ...)
  }
  before <- spent(connection)
  price <- ask(then = pt_price)
  expect_equal(price$epsilon, 0.0625)
  expect_false(price$recorded)
  expect_match(shown(price), "It costs epsilon = 0.0625 of people. There is as much left.")
  expect_true(ask(then = pt_rehearse)$made_up_rows)
  expect_equal(spent(connection), before)
  first <- ask()
  expect_false(first$recorded)
  expect_equal(spent(connection), before + 0.0625)
  again <- ask()
  expect_true(again$recorded)
  expect_equal(again$p.value, first$p.value)
  expect_true(ask(then = pt_price)$recorded)
  expect_equal(spent(connection), before + 0.0625)
  job <- pt_jobs(connection, last = 1)[[1]]
  expect_equal(pt_result(pt_job(connection, job$id))$p.value, first$p.value)
  expect_match(shown(job), "people: two-sample/ks, epsilon 0.0625: answered")
})

test_that("every question is answered, several at once", {
  data <- people()
  cost <- 0.015625
  jobs <- list(
    test = pt_two_sample(data, "visits", "region",
      groups = c("north", "south"), method = "ttest", epsilon = cost, delta = 1e-9,
      alternative = "less", then = pt_submit
    ),
    related = pt_independence(data, "age", "visits",
      epsilon = cost, method = "kendall", then = pt_submit
    ),
    changed = pt_paired(data, "visits", "age",
      epsilon = cost, method = "wilcoxon", then = pt_submit
    ),
    fits = pt_fit(data, "plan",
      shares = c(basic = 0.5, plus = 0.5), epsilon = cost, then = pt_submit
    ),
    share = pt_mean(data, "plan", success = "plus", epsilon = cost, then = pt_submit),
    half = pt_quantile(data, "visits", epsilon = cost, then = pt_submit),
    each = pt_two_sample(data, c("visits", "age"), "plan",
      method = "ks", each_column = "holm", epsilon = cost, then = pt_submit
    )
  )
  found <- lapply(jobs, pt_wait)
  expect_named(found$test$estimate, c("mean of x", "mean of y"))
  expect_lte(found$test$conf.int[1], found$test$conf.int[2]) # equal where noise puts both at a bound
  expect_named(found$related$estimate, "tau")
  expect_equal(found$changed$data.name, "age - visits")
  expect_equal(as.data.frame(found$fits)$term, c("basic", "plus"))
  expect_equal(as.data.frame(found$share)$term, "plan")
  expect_equal(as.data.frame(found$half)$term, "visits")
  expect_equal(as.data.frame(found$each)$term, c("visits", "age"))
  for (result in found) {
    expect_equal(result$epsilon, cost)
    expect_match(shown(result), "Privacy spent: epsilon = 0.015625")
  }
})

test_that("synthetic data is written and asked at no cost", {
  data <- people()
  made <- pt_release(data, c("visits", "plan"),
    epsilon = 0.03125, delta = 1e-9, points = 20, method = "tables"
  )
  before <- spent(data$connection)
  file <- pt_write(made, tempfile())
  expect_equal(rawToChar(readBin(file, "raw", 4)), "PAR1")
  mean <- pt_query(made, "mean", "visits")
  expect_true(mean$value >= 0 && mean$value <= 80)
  expect_equal(spent(data$connection), before)
  expect_match(shown(made), "Privacy spent")
})

test_that("refusals cost nothing, and are told apart", {
  data <- people()
  before <- spent(data$connection)
  ask <- function(column, epsilon) pt_quantile(data, column, epsilon = epsilon)
  expect_error(ask("nothing", 0.5), "nothing", class = "privatest_parameter_error")
  expect_error(ask("visits", 5), "at most 1", class = "privatest_parameter_error")
  short <- tryCatch(
    for (i in 1:3) ask("visits", 1 - i / 100),
    privatest_budget_error = identity
  )
  expect_s3_class(short, "privatest_budget_error")
  expect_gt(short$asked$epsilon, short$left$epsilon)
  stranger <- pt_connect(data$connection$url, "pt_nobody")
  failed <- tryCatch(pt_me(stranger), error = identity)
  expect_equal(failed$status, 401)
  expect_false(grepl("pt_nobody", conditionMessage(failed)))
  expect_error(pt_history(data$connection, "people"), "scope", class = "privatest_service_error")
})

test_that("custodians see budgets and entries", {
  carol <- service("PRIVATEST_TEST_CUSTODIAN")
  budgets <- pt_budgets(carol)
  expect_equal(budgets$analyst, c(NA, "ada", "bob"))
  expect_equal(budgets$spent_epsilon[1], sum(budgets$spent_epsilon[-1]))
  entries <- pt_history(carol, "people", last = 2)
  expect_equal(nrow(entries), 2)
  expect_gt(entries$sequence[1], entries$sequence[2])
})
