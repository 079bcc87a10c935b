import Base

/// A row in the JSON of DynamoDB, in which each value is an object that names its type.
///
/// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
enum DynamoDBItem {
    /// Returns the members of a row as plain JSON.
    ///
    /// A row is a line of an export (`{"Item": …}`) or an object whose members are all typed; other members are
    /// returned unchanged. Binary values stay typed, because no imported field is binary.
    static func plain(_ members: [String: JSONValue]) -> [String: JSONValue] {
        if let row = typed(members) { return row }
        guard let item = members["Item"]?.object else { return members }
        return typed(item) ?? item
    }

    private static func typed(_ members: [String: JSONValue]) -> [String: JSONValue]? {
        guard !members.isEmpty else { return nil }
        var row: [String: JSONValue] = [:]
        for (name, value) in members {
            guard let plain = plain(value) else { return nil }
            row[name] = plain
        }
        return row
    }

    /// Returns the value without its type; `nil` if it does not have exactly one type, or if its content is of another
    /// type.
    private static func plain(_ value: JSONValue) -> JSONValue? {
        guard let members = value.object, members.count == 1, let (type, content) = members.first else { return nil }
        switch (type, content) {
        case ("S", .string), ("BOOL", .bool): return content
        case ("N", .string(let digits)): return Double(digits) == nil ? nil : .number(digits)
        case ("NULL", .bool): return .null
        case ("SS", .array): return content
        case ("NS", .array(let values)): return all(values.map { plain(.object(["N": $0])) }).map(JSONValue.array)
        case ("L", .array(let values)): return all(values.map(plain)).map(JSONValue.array)
        case ("M", .object(let row)): return row.isEmpty ? content : typed(row).map(JSONValue.object)
        case ("B", .string), ("BS", .array): return value
        default: return nil
        }
    }

    private static func all(_ values: [JSONValue?]) -> [JSONValue]? {
        let converted = values.compactMap(\.self)
        return converted.count == values.count ? converted : nil
    }
}
