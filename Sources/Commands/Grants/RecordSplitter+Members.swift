import Base
import Worker

extension RecordSplitter.Record {
    /// Returns the members of the record's object; those of a DynamoDB row without their types.
    func members() throws(ImportProblem) -> [String: JSONValue] {
        switch content {
        case .text(let text):
            let members = DynamoDBItem.plain(try Self.object(in: text, from: line))
            guard members["Items"]?.array == nil else {
                throw ImportProblem(
                    "Items holds many rows in one object; each row must be an object: aws dynamodb scan --query 'Items[]'"
                )
            }
            return members
        case .tooLong: throw ImportProblem("longer than \(RecordSplitter.longestRecord) bytes; skipped")
        case .tooDeep: throw ImportProblem("nested too deeply")
        case .notAnObject: throw ImportProblem("not a JSON object")
        case .unclosedArray: throw ImportProblem("the input ends inside an array that is not closed")
        }
    }

    private static func object(in text: [UInt8], from line: Int) throws(ImportProblem) -> [String: JSONValue] {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue.parse(text)
        } catch {
            let before = text.prefix(error.offset)
            let lineBreaks = before.count { $0 == UInt8(ascii: "\n") }
            let column = before.reversed().prefix { $0 != UInt8(ascii: "\n") }.count
            let position = lineBreaks == 0 ? "byte \(column + 1)" : "line \(line + lineBreaks), byte \(column + 1)"
            throw ImportProblem("not JSON: \(error.problem) at \(position)")
        }
        guard let members = value.object else { throw ImportProblem("not a JSON object") }
        return members
    }
}
