import Store

/// Why statements failed, with what the store itself needs to know about it.
struct Failure: Error {
    /// What the caller is told.
    let error: StoreError
    /// The server's code (https://www.postgresql.org/docs/15/errcodes-appendix.html), where it sent one.
    var state: String?
    /// Whether the connection is of no use any more.
    var losesConnection = false
    /// Whether a commit was on its way, so that nobody knows whether it took place.
    var isUncertain = false

    init(_ error: StoreError, state: String? = nil, losesConnection: Bool = false) {
        self.error = error
        self.state = state
        self.losesConnection = losesConnection
    }

    init(_ code: StoreError.Code, _ message: String) {
        self.init(StoreError(code, message))
    }

    /// Whether the same statements may go through in a new transaction: nothing of them was written.
    var mayRunAgain: Bool {
        guard !isUncertain else { return false }
        switch state {
        // A serialisation failure, a deadlock, an idle transaction that the server ended.
        case "40001", "40P01", "25P03": return true
        // A prepared statement that is missing or there already: a pooler lent another session.
        case "26000", "42P05": return true
        default: return losesConnection
        }
    }

    /// Says that nobody knows whether the transaction was committed.
    func asUncertain(in database: String) -> Failure {
        var failure = Failure(
            .unreachable,
            "The connection to \(database) was lost during a commit, so it is not known whether that took place. It is safe "
                + "to try again. (\(error.message))"
        )
        failure.state = state
        failure.losesConnection = true
        failure.isUncertain = true
        return failure
    }
}
