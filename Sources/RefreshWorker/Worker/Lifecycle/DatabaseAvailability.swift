import Storage

/// The state of the database at its last use, so that its loss and its return are each reported once.
struct DatabaseAvailability: Equatable, Sendable {
    /// The code of the last failure, if no success followed: `.some(nil)` for an error that is not the store's.
    private var failure: StoreError.Code??

    /// Records a success, and returns `true` if it ends a loss.
    mutating func succeeded() -> Bool {
        defer { failure = nil }
        return failure != nil
    }

    /// Records a failure, and returns `true` if it differs from the one before.
    mutating func failed(with code: StoreError.Code?) -> Bool {
        defer { failure = .some(code) }
        return failure != .some(code)
    }
}
