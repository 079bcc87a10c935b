/// The columns of the rows that hold elements of one type: the one list of their names, types, constraints and values.
///
/// The schemas of both databases, the statements that read or write whole rows, and copies of a store come from it.
///
/// A new column needs a line here and a line where rows are read. The first schema follows this list, so until the
/// first release the checksum in `MigrationTests` changes with it. After that release, a column needs a step of the
/// schema too (``SchemaStep``), and the first step must leave it out (``without(_:)``).
struct Table<Element>: Sendable {
    struct Column: Sendable {
        let name: String
        let type: SQLType
        /// The text that follows the type in CREATE TABLE.
        let constraint: String
        let value: @Sendable (Element) -> SQLValue

        /// A column without a value is only written by statements of its own.
        init(
            _ name: String,
            _ type: SQLType,
            _ constraint: String = "",
            _ value: @escaping @Sendable (Element) -> SQLValue = { _ in
                preconditionFailure("a column without a value")
            }
        ) {
            self.name = name
            self.type = type
            self.constraint = constraint
            self.value = value
        }
    }

    let name: String
    let columns: [Column]
    /// The names of the columns, as SELECT lists them.
    let names: String
    /// The names of the columns of the primary key, in its order.
    let key: [String]

    /// `key` names the columns of a key of several columns. Without it the first column is the key.
    init(_ name: String, key: [String]? = nil, _ columns: [Column]) {
        self.name = name
        self.columns = columns
        self.key = key ?? columns.prefix(1).map(\.name)
        names = columns.map(\.name).joined(separator: ", ")
    }

    func without(_ names: String...) -> Table { without(names) }

    func without(_ names: [String]) -> Table { Table(name, key: key, columns.filter { !names.contains($0.name) }) }

    /// Returns the table with these columns, in this order.
    func only(_ names: [String]) -> Table {
        Table(
            name,
            key: key,
            names.map { name in
                guard let column = columns.first(where: { $0.name == name }) else {
                    preconditionFailure("\(self.name) has no column \(name)")
                }
                return column
            }
        )
    }

    func values(of element: Element) -> [SQLValue] { columns.map { $0.value(element) } }

    /// The same columns for rows of values.
    var rows: Table<[SQLValue]> {
        Table<[SQLValue]>(
            name,
            key: key,
            columns.enumerated().map { index, column in
                .init(column.name, column.type, column.constraint) { $0[index] }
            }
        )
    }

    // MARK: Statements

    var placeholders: String { columns.indices.map { "$\($0 + 1)" }.joined(separator: ", ") }
    private var assignments: String {
        let others = columns.map(\.name).filter { !key.contains($0) }
        return others.map { "\($0) = \(placeholder(of: $0))" }.joined(separator: ", ")
    }
    /// The condition that a row has the key that is in the values of the statement.
    private var hasKey: String { key.map { "\($0) = \(placeholder(of: $0))" }.joined(separator: " AND ") }
    var keyNames: String { key.joined(separator: ", ") }

    func placeholder(of name: String) -> String {
        guard let index = columns.firstIndex(where: { $0.name == name }) else {
            preconditionFailure("\(self.name) has no column \(name)")
        }
        return "$\(index + 1)"
    }

    /// Returns the statement that reads the rows that `rest` says.
    func select(_ name: String, _ rest: String) -> SQLQuery {
        SQLQuery(name, sql: "SELECT \(names) FROM refresh_worker.\(self.name) \(rest)")
    }

    /// Returns the statement that adds a row unless it conflicts with another, or `condition` is false. The count of
    /// changed rows shows if it was left out: on PostgreSQL an error would end the whole transaction.
    func insert(_ name: String, where condition: String = "true") -> SQLQuery {
        SQLQuery(
            name,
            sql:
                "INSERT INTO refresh_worker.\(self.name) (\(names)) SELECT \(placeholders) WHERE \(condition) ON CONFLICT DO NOTHING"
        )
    }

    /// Returns the statement that adds a row and fails if there is a conflict.
    func add(_ name: String) -> SQLQuery {
        SQLQuery(name, sql: "INSERT INTO refresh_worker.\(self.name) (\(names)) VALUES (\(placeholders))")
    }

    /// Returns the statement that adds a row, or changes the one with the same key.
    func put(_ name: String) -> SQLQuery {
        SQLQuery(name, sql: "\(add(name).text) ON CONFLICT (\(keyNames)) DO UPDATE SET \(assignments)")
    }

    /// Returns the statement that changes the row with the key, if `condition` is true.
    func update(_ name: String, where condition: String = "true") -> SQLQuery {
        SQLQuery(
            name,
            sql: "UPDATE refresh_worker.\(self.name) SET \(assignments) WHERE \(hasKey) AND \(condition)"
        )
    }

    /// Returns the statement that removes the row with the key, if `condition` is true.
    func delete(_ name: String, where condition: String = "true") -> SQLQuery {
        SQLQuery(name, sql: "DELETE FROM refresh_worker.\(self.name) WHERE \(hasKey) AND \(condition)")
    }

    /// Returns the statement that removes at most `$2` of the rows that fulfil the condition.
    func deleteSome(_ name: String, where condition: String) -> SQLQuery {
        let table = "refresh_worker.\(self.name)"
        return SQLQuery(
            name,
            sql:
                "DELETE FROM \(table) WHERE (\(keyNames)) IN (SELECT \(keyNames) FROM \(table) WHERE \(condition) LIMIT $2)"
        )
    }

    // MARK: Many rows in one statement of PostgreSQL: each column is an array that `unnest` turns into rows again

    /// Returns the statement that adds rows.
    func insertMany(_ name: String) -> SQLQuery {
        SQLQuery(name, sql: "INSERT INTO refresh_worker.\(self.name) (\(names)) SELECT \(names) FROM \(newRows)")
    }

    /// Returns the statement that changes the rows with the keys of elements.
    func updateMany(_ name: String) -> SQLQuery {
        let hasKey = key.map { "old.\($0) = new.\($0)" }.joined(separator: " AND ")
        return SQLQuery(
            name,
            sql: "UPDATE refresh_worker.\(self.name) AS old SET \(changes) FROM \(newRows) WHERE \(hasKey)"
        )
    }

    /// The assignments of all columns but the key.
    var changes: String {
        columns.map(\.name).filter { !key.contains($0) }.map { "\($0) = new.\($0)" }.joined(separator: ", ")
    }

    /// The rows `new` that the values of the statement are.
    var newRows: String { "\(newArrays) AS new (\(names))" }

    /// The same, without a name.
    var newArrays: String {
        let arrays = columns.enumerated().map { index, column in
            "$\(index + 1)::\(SQLDialect.postgres.name(of: column.type))[]"
        }
        return "unnest(\(arrays.joined(separator: ", ")))"
    }

    /// Returns the values of all elements, column by column.
    func arrays(of elements: [Element]) -> [SQLValue] {
        columns.map { column in .array(column.type, elements.map(column.value)) }
    }
}

/// The type of a column's values.
enum SQLType: Hashable, Sendable {
    case integer
    case text
    case bytes
    case flag
}

extension SQLValue {
    static func integers(_ values: some Sequence<Int64>) -> SQLValue { .array(.integer, values.map { .integer($0) }) }
    static func texts(_ values: some Sequence<String>) -> SQLValue { .array(.text, values.map { .text($0) }) }
    static func ids(_ values: some Sequence<GrantID>) -> SQLValue { integers(values.map(\.rawValue)) }
}
