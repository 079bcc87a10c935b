import Store

/// Whether the database could be used when it was used last, so that a loss and its end are each told once.
struct DatabaseStanding: Equatable, Sendable {
    private var trouble: Trouble?

    private struct Trouble: Equatable, Sendable {
        /// `nil` for what is no fault of the store's.
        var code: StoreError.Code?
    }

    /// Takes note of a success; answers whether it ends a loss.
    mutating func succeeded() -> Bool {
        defer { trouble = nil }
        return trouble != nil
    }

    /// Takes note of a failure; answers whether it is another than the one before.
    mutating func failed(with code: StoreError.Code?) -> Bool {
        let latest = Trouble(code: code)
        defer { trouble = latest }
        return trouble != latest
    }
}
