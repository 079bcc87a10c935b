package import Base

/// A row in the JSON of DynamoDB, in which each value is an object that names its type.
///
/// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
extension [String: JSONValue] {
    /// The members of a DynamoDB row as plain JSON.
    ///
    /// A row is a line of an export (`{"Item": …}`) or an object whose members are all typed. Other members are
    /// unchanged. Binary values stay typed, because no imported field is binary.
    package var withoutDynamoDBTypes: [String: JSONValue] {
        if let row = untyped { return row }
        guard let item = self["Item"]?.object else { return self }
        return item.untyped ?? item
    }

    private var untyped: [String: JSONValue]? {
        let row = compactMapValues(Self.plain)
        return isEmpty || row.count < count ? nil : row
    }

    /// Returns the value without its type, or `nil` if it does not have exactly one type, or if its content is of
    /// another type.
    private static func plain(_ value: JSONValue) -> JSONValue? {
        guard let members = value.object, members.count == 1, let (type, content) = members.first else { return nil }
        switch (type, content) {
        case ("S", .string), ("BOOL", .bool): return content
        case ("N", .string(let digits)): return Double(digits) == nil ? nil : .number(digits)
        case ("NULL", .bool): return .null
        case ("SS", .array): return content
        case ("NS", .array(let values)): return all(values.map { plain(.object(["N": $0])) }).map(JSONValue.array)
        case ("L", .array(let values)): return all(values.map(plain)).map(JSONValue.array)
        case ("M", .object(let row)): return row.isEmpty ? content : row.untyped.map(JSONValue.object)
        case ("B", .string), ("BS", .array): return value
        default: return nil
        }
    }

    private static func all(_ values: [JSONValue?]) -> [JSONValue]? {
        let converted = values.compactMap(\.self)
        return converted.count == values.count ? converted : nil
    }
}
