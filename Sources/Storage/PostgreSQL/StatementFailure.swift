/// The reason why statements failed, with the facts that the store itself needs.
struct StatementFailure: Error {
    /// The error for the caller.
    let error: StoreError
    /// The server's code (https://www.postgresql.org/docs/15/errcodes-appendix.html), if it sent one.
    var state: String?
    /// `true` if the connection cannot be used any more.
    var losesConnection = false
    /// `true` if a commit was in flight, so that its outcome is unknown.
    var isUncertain = false

    init(_ error: StoreError, state: String? = nil, losesConnection: Bool = false) {
        self.error = error
        self.state = state
        self.losesConnection = losesConnection
    }

    init(_ code: StoreError.Code, _ message: String) {
        self.init(StoreError(code, message))
    }

    /// Creates the failure for a transaction whose wait for the synchronous standby was cancelled.
    ///
    /// The transaction is repeated by its caller. It locks the same rows, so its commit waits for the standby too, and
    /// the standby gets the first commit before it.
    init(unreplicatedIn database: String) {
        self.init(
            .unreachable,
            "A commit in \(database) did not wait for the synchronous standby, because the wait was cancelled "
                + "(pg_cancel_backend). It counts as not done, and is tried again. Find out who cancels it, and why the "
                + "standby is behind."
        )
        isUncertain = true
    }

    /// `true` if the same statements may succeed in a new transaction: none of them was written.
    var mayRunAgain: Bool {
        guard !isUncertain else { return false }
        switch state {
        // A serialisation failure, a deadlock, and an idle transaction that the server ended.
        case "40001", "40P01", "25P03": return true
        // A prepared statement is missing or exists already: a pooler used another session.
        case "26000", "42P05": return true
        default: return losesConnection
        }
    }

    var losingConnection: StatementFailure {
        var failure = self
        failure.losesConnection = true
        return failure
    }

    /// Returns the failure for a transaction whose commit may or may not have taken place.
    func asUncertain(in database: String) -> StatementFailure {
        var failure = StatementFailure(
            .unreachable,
            "The connection to \(database) was lost during a commit, so it is not known whether that took place. It "
                + "is safe to try again. (\(error.message))"
        )
        failure.state = state
        failure.losesConnection = true
        failure.isUncertain = true
        return failure
    }
}
