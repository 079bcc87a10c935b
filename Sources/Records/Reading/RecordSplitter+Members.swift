package import Base

extension RecordSplitter.Record {
    /// Returns the members of the record's object.
    ///
    /// A DynamoDB row loses its types.
    package func members() throws(InputError) -> [String: JSONValue] {
        switch content {
        case .text(let text):
            let members = try Self.object(in: text, from: line).withoutDynamoDBTypes
            guard members["Items"]?.array == nil else {
                throw InputError(
                    "Items holds many rows in one object; each row must be an object: aws dynamodb scan --query 'Items[]'"
                )
            }
            return members
        case .tooLong: throw InputError("longer than \(RecordSplitter.maximumRecordLength) bytes; skipped")
        case .tooDeep: throw InputError("nested too deeply")
        case .notAnObject: throw InputError("not a JSON object")
        case .unclosedArray: throw InputError("the input ends inside an array that is not closed")
        }
    }

    private static func object(in text: [UInt8], from line: Int) throws(InputError) -> [String: JSONValue] {
        let value: JSONValue
        do throws(FormatError) {
            value = try JSONValue.parse(text)
        } catch {
            let before = text.prefix(error.offset ?? 0)
            let lineBreaks = before.count { $0 == UInt8(ascii: "\n") }
            let column = before.reversed().prefix { $0 != UInt8(ascii: "\n") }.count
            let position = lineBreaks == 0 ? "byte \(column + 1)" : "line \(line + lineBreaks), byte \(column + 1)"
            throw InputError("not JSON: \(error.problem) at \(position)")
        }
        guard let members = value.object else { throw InputError("not a JSON object") }
        return members
    }
}
