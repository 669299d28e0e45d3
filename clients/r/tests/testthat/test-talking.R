test_that("what is lost is sent again, the same", {
  there <- scripted("lost", reply("<html>", 502), reply("{}", 429, "7"), reply('{"id": "x"}'))
  expect_equal(say(there$connection, "/run", list(epsilon = shortest(0.1)))$id, "x")
  expect_length(unique(there$seen$bodies), 1)
  expect_equal(there$seen$pauses, c(0.2, 0.4, 7))
})

test_that("somebody who never answers is given up", {
  there <- do.call(scripted, as.list(rep("lost", 5)))
  expect_error(look(there$connection, "/me"), class = "privatest_lost")
  expect_length(there$seen$bodies, 5)
  there <- do.call(scripted, rep(list(reply("<html>", 503)), 5))
  expect_error(look(there$connection, "/me"), class = "privatest_service_error")
})

test_that("an answer that says why is not asked again", {
  there <- scripted(reply('{"error": "LedgerError", "message": "The ledger is away."}', 503))
  expect_error(look(there$connection, "/me"), "The ledger is away", class = "privatest_ledger_error")
  expect_length(there$seen$bodies, 1)
})

test_that("answers that cannot be read are failures", {
  for (text in c("", "[]", "7", "{", "<html>")) {
    there <- scripted(reply(text))
    expect_error(look(there$connection, "/me"), "no answer", class = "privatest_service_error")
  }
})

test_that("refusals keep the service's words and numbers", {
  short <- tryCatch(
    stop(failure_of(list(
      error = "BudgetError", message = "Too little is left.",
      asked = list(epsilon = 1), left = list(epsilon = 0.5)
    ), 409)),
    privatest_budget_error = identity
  )
  expect_equal(conditionMessage(short), "Too little is left.")
  expect_equal(c(short$asked$epsilon, short$left$epsilon), c(1, 0.5))
  for (spent in c(TRUE, FALSE)) {
    failed <- failure_of(list(id = "abc", spent = spent))
    expect_s3_class(failed, "privatest_request_failed")
    expect_equal(failed$spent, spent)
    expect_match(conditionMessage(failed), if (spent) "is spent" else "nothing was spent")
  }
  stranger <- failure_of(list(error = "SignInNeeded", message = "Who?"), 401)
  expect_match(conditionMessage(stranger), "privatest curator token")
})

test_that("a job is watched to its end, and a lost one says where it goes on", {
  job <- function(state, document = "null") {
    reply(paste0(
      '{"id": "j1", "state": "', state, '", "request": {"question": "mean"}, "asked": "now", ',
      '"ended": null, "document": ', document, "}"
    ))
  }
  refused <- '{"error": "ParameterError", "message": "epsilon must be given."}'
  there <- scripted(job("waiting"), job("running"), job("refused", refused))
  begun <- pt_submit(there$connection, pt_request("people"))
  expect_error(pt_result(begun), "pt_wait")
  expect_error(pt_wait(begun), "epsilon must", class = "privatest_parameter_error")
  expect_equal(there$seen$pauses, c(0.05, 0.075))
  there <- do.call(scripted, c(list(job("waiting")), as.list(rep("lost", 5))))
  expect_error(pt_run(there$connection, pt_request("people")), 'pt_job\\(connection, "j1"\\)')
})

test_that("somebody at a terminal is told after two seconds", {
  job <- list(id = "0123456789", state = "running")
  old <- options(privatest.progress = TRUE)
  on.exit(options(old))
  expect_silent(expect_false(tell(job, 1.9)))
  expect_message(expect_true(tell(job, 3)), "01234567 is running, 3 s")
  options(privatest.progress = FALSE)
  expect_silent(expect_false(tell(job, 3)))
})
