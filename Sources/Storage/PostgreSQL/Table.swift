/// The mapping of values of one kind to the rows of a table: SQL and binding come from one list of columns.
///
/// Many rows are written by one statement, each column an array that `unnest` turns into rows again.
struct Table<Element> {
    struct Column: Sendable {
        enum Reading: Sendable {
            case integer(@Sendable (Element) -> Int64?)
            case text(@Sendable (Element) -> String?)
            case bytes(@Sendable (Element) -> [UInt8]?)
            case flag(@Sendable (Element) -> Bool?)
        }

        let name: String
        let reading: Reading

        init(_ name: String, _ reading: Reading) {
            self.name = name
            self.reading = reading
        }

        fileprivate var arrayType: String {
            switch reading {
            case .integer: "bigint[]"
            case .text: "text[]"
            case .bytes: "bytea[]"
            case .flag: "boolean[]"
            }
        }
    }

    /// Returns the statement that adds the rows without a conflict for which `condition` is true (it calls the row
    /// `new`).
    ///
    /// The count of changed rows shows if one was left out: an error would end the whole transaction.
    static func insert(
        _ name: String,
        into table: String,
        _ columns: [Column],
        where condition: String = "true"
    ) -> PostgresQuery {
        let names = columns.map(\.name).joined(separator: ", ")
        return PostgresQuery(
            name,
            """
            INSERT INTO \(table) (\(names)) SELECT \(names) FROM \(rows(of: columns)) WHERE \(condition)
            ON CONFLICT DO NOTHING
            """
        )
    }

    /// Returns the statement that changes the rows with the key of an element: the first column.
    static func update(_ name: String, _ table: String, _ columns: [Column]) -> PostgresQuery {
        let key = columns[0].name
        let changes = columns.dropFirst().map { "\($0.name) = new.\($0.name)" }.joined(separator: ", ")
        return PostgresQuery(
            name,
            "UPDATE \(table) AS old SET \(changes) FROM \(rows(of: columns)) WHERE old.\(key) = new.\(key)"
        )
    }

    /// Binds the values of all elements, column by column, as the statements above expect them.
    static func bind(_ elements: [Element], _ columns: [Column], to parameters: inout Parameters) {
        for column in columns {
            switch column.reading {
            case .integer(let read): parameters.bind(integers: elements, read)
            case .text(let read): parameters.bind(texts: elements, read)
            case .bytes(let read): parameters.bind(byteArrays: elements, read)
            case .flag(let read): parameters.bind(flags: elements, read)
            }
        }
    }

    static func rows(of columns: [Column]) -> String {
        rows(of: columns, followedBy: [Table<Element>.Column]())
    }

    /// The rows of columns that are bound from two lists of elements of the same length.
    static func rows<Other>(of columns: [Column], followedBy others: [Table<Other>.Column]) -> String {
        let all = columns.map { ($0.name, $0.arrayType) } + others.map { ($0.name, $0.arrayType) }
        let arrays = all.enumerated().map { "$\($0.offset + 1)::\($0.element.1)" }.joined(separator: ", ")
        return "unnest(\(arrays)) AS new (\(all.map(\.0).joined(separator: ", ")))"
    }
}
