/// Statements that are sent together and take one round trip.
struct StatementBatch {
    struct Entry {
        let query: PostgresQuery
        let parameters: Parameters
    }

    private(set) var entries: [Entry] = []

    /// Adds a statement and returns the position of its result.
    @discardableResult
    mutating func add(_ query: PostgresQuery, bind: (inout Parameters) -> Void = { _ in }) -> Int {
        var parameters = Parameters()
        bind(&parameters)
        entries.append(Entry(query: query, parameters: parameters))
        return entries.count - 1
    }
}

extension StatementBatch {
    /// Creates a batch of one statement without values.
    init(_ query: PostgresQuery) {
        self.init()
        add(query)
    }
}
