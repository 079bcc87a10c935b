import Store

/// The state of the database at its last use, so that a loss and its end are each reported once.
struct DatabaseAvailability: Equatable, Sendable {
    private var trouble: Trouble?

    private struct Trouble: Equatable, Sendable {
        /// `nil` for an error that does not come from the store.
        var code: StoreError.Code?
    }

    /// Records a success; returns `true` if it ends a loss.
    mutating func succeeded() -> Bool {
        defer { trouble = nil }
        return trouble != nil
    }

    /// Records a failure; returns `true` if it differs from the one before.
    mutating func failed(with code: StoreError.Code?) -> Bool {
        let latest = Trouble(code: code)
        defer { trouble = latest }
        return trouble != latest
    }
}
