/// Many rows are written by one statement, each column an array that `unnest` turns into rows again.
extension Table {
    /// Returns the statement that adds rows.
    func insertMany(_ name: String) -> SQLQuery {
        SQLQuery(name, "INSERT INTO refresh_worker.\(self.name) (\(names)) SELECT \(names) FROM \(newRows)")
    }

    /// Returns the statement that changes the rows with the keys of elements.
    func updateMany(_ name: String) -> SQLQuery {
        let key = columns[0].name
        return SQLQuery(
            name,
            "UPDATE refresh_worker.\(self.name) AS old SET \(changes) FROM \(newRows) WHERE old.\(key) = new.\(key)"
        )
    }

    /// The assignments of all columns but the key.
    var changes: String { columns.dropFirst().map { "\($0.name) = new.\($0.name)" }.joined(separator: ", ") }

    /// The rows `new` that the values of the statement are.
    var newRows: String {
        let arrays = columns.enumerated().map { "$\($0.offset + 1)::\($0.element.arrayType)" }.joined(separator: ", ")
        return "unnest(\(arrays)) AS new (\(names))"
    }

    /// Returns the values of all elements, column by column.
    func arrays(of elements: [Element]) -> [SQLValue] {
        columns.map { column in .array(column.type, elements.map(column.value)) }
    }
}

extension Table.Column {
    fileprivate var arrayType: String {
        switch type {
        case .integer, .sequence: "bigint[]"
        case .text: "text[]"
        case .bytes: "bytea[]"
        case .flag: "boolean[]"
        }
    }
}

extension SQLValue {
    static func integers(_ values: some Sequence<Int64>) -> SQLValue { .array(.integer, values.map { .integer($0) }) }
    static func texts(_ values: some Sequence<String>) -> SQLValue { .array(.text, values.map { .text($0) }) }
    static func ids(_ values: some Sequence<GrantID>) -> SQLValue { integers(values.map(\.rawValue)) }
}
