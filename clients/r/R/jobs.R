#' Ask, and wait for the answer
#'
#' `pt_run()` begins a request and waits; somebody at a terminal is told after two seconds. An
#' interrupt stops waiting, not the request: its number is shown. `pt_submit()` does not wait.
#'
#' @param connection What [pt_connect()] returned.
#' @param request What [pt_request()] returned.
#' @param id The number of a job.
#' @param last How many of the newest.
#' @param job What `pt_submit()`, `pt_job()` or an element of `pt_jobs()` is.
#' @return `pt_run()`, `pt_wait()` and `pt_result()`: the result. A test is of class `htest`, with
#'   `statistic`, `p.value`, `estimate` and `conf.int` where they were released, and besides
#'   `reject`, `alpha`, `epsilon`, `delta`, `sizes`, `settings` (public parameters), `released` (all
#'   estimates), `verdict`, `guarantee` and `recorded`. `pt_submit()` and `pt_job()`: a job with
#'   `id`, `state`, `request`, `asked` and `ended`. `pt_jobs()`: a list of jobs, newest first.
#'
#'   Refusals and failures are [conditions][privatest-conditions].
#' @section Privacy:
#' An answer is charged once, however often it is asked for: an identical request that is on its way
#' is not begun again, and one that was answered is answered from the record. A request that failed
#' after it was charged is charged anew when it is sent again, also for a lost connection.
#' @export
pt_run <- function(connection, request) pt_wait(pt_submit(connection, request))

#' @rdname pt_run
#' @export
pt_submit <- function(connection, request) {
  job_of(say(connection, "/run", unclass(request)), connection)
}

#' @rdname pt_run
#' @export
pt_job <- function(connection, id) {
  job_of(look(connection, paste0("/jobs/", encoded(id))), connection)
}

#' @rdname pt_run
#' @export
pt_jobs <- function(connection, last = 50) {
  found <- look(connection, paste0("/jobs?last=", as.integer(last)))$items
  lapply(found, job_of, connection = connection)
}

#' @rdname pt_run
#' @export
pt_wait <- function(job) {
  began <- proc.time()[["elapsed"]]
  again <- paste0("pt_wait(pt_job(connection, \"", job$id, "\"))")
  told <- FALSE
  on.exit(if (told) message("\r", strrep(" ", 78), "\r", appendLF = FALSE))
  pause <- 0.05
  withCallingHandlers(
    while (!is_done(job)) {
      job$connection$sleep(pause)
      pause <- min(1.5 * pause, 2)
      job <- tryCatch(
        pt_job(job$connection, job$id),
        privatest_service_error = function(failed) {
          stop(with_note(failed, paste("The job may go on:", again)))
        }
      )
      told <- tell(job, proc.time()[["elapsed"]] - began) || told
    },
    interrupt = function(stopped) message("\nThe job goes on, and is paid for: ", again)
  )
  pt_result(job)
}

#' @rdname pt_run
#' @export
pt_result <- function(job) {
  if (!is_done(job)) {
    stop(service_failure(paste0("The job ", job$id, " is ", job$state, ": use pt_wait().")))
  }
  if (job$state != "answered") stop(failure_of(job$document %||% list()))
  result_of(job$document, job)
}

#' @export
print.privatest_job <- function(x, ...) {
  about <- paste(c(x$request$question, x$request$method), collapse = "/")
  cat(substr(x$id, 1, 8), "  ", x$asked, "  ", x$request$dataset, ": ", about, ", epsilon ",
    x$request$epsilon, ": ", x$state, "\n",
    sep = ""
  )
  invisible(x)
}

job_of <- function(document, connection) {
  keys <- c("id", "state", "request", "asked", "ended", "document")
  structure(c(document[keys], list(connection = connection)), class = "privatest_job")
}

is_done <- function(job) !job$state %in% c("waiting", "running")

# Says at a terminal that something takes long; returns whether it did.
tell <- function(job, seconds) {
  if (seconds < 2 || !getOption("privatest.progress", interactive())) {
    return(FALSE)
  }
  words <- paste0("The curator's job ", substr(job$id, 1, 8), " is ", job$state, ", ")
  message("\r", format(paste0(words, round(seconds), " s"), width = 78), appendLF = FALSE)
  TRUE
}
