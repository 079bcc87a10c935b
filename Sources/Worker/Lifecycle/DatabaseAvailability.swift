import Storage

/// The state of the database at its last use, so that its loss and its return are each reported once.
struct DatabaseAvailability: Equatable, Sendable {
    private var failure: Failure?

    private struct Failure: Equatable, Sendable {
        /// `nil` for an error that does not come from the store.
        var code: StoreError.Code?
    }

    /// Records a success; returns `true` if it ends a loss.
    mutating func succeeded() -> Bool {
        defer { failure = nil }
        return failure != nil
    }

    /// Records a failure; returns `true` if it differs from the one before.
    mutating func failed(with code: StoreError.Code?) -> Bool {
        let latest = Failure(code: code)
        defer { failure = latest }
        return failure != latest
    }
}
