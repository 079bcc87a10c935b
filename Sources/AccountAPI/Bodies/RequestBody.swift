internal import HTTPServer
internal import JSON

/// What is wrong with a request's body; the words are safe to show, since they never hold what was sent.
enum BodyProblem: Error, Hashable, Sendable {
    /// There is none, nor a word about one.
    case undeclared
    case unsupportedMediaType
    /// Not of the kind that its media type says.
    case unreadable
    case missing(String)
    /// A field that is there and is not what it must be, with what it must be.
    case flawed(String, mustBe: String)
}

/// The body of a request as named values, whichever way it was written.
enum RequestBody {
    /// Reads an object from JSON.
    static func json(_ request: ServerRequest) throws(BodyProblem) -> BodyFields {
        guard request.declaresBody else { throw .undeclared }
        guard mediaType(of: request) == "application/json" else { throw .unsupportedMediaType }
        return try object(in: request.body)
    }

    /// Reads an object from JSON, or the fields of a form.
    static func jsonOrForm(_ request: ServerRequest) throws(BodyProblem) -> BodyFields {
        guard request.declaresBody else { throw .undeclared }
        switch mediaType(of: request) {
        case "application/json": return try object(in: request.body)
        case "application/x-www-form-urlencoded": return BodyFields(form(request))
        default: throw .unsupportedMediaType
        }
    }

    /// The type without its parameters, in lower case.
    private static func mediaType(of request: ServerRequest) -> String? {
        guard let type = request.header("Content-Type")?.split(separator: ";").first else { return nil }
        return type.filter { $0 != " " && $0 != "\t" }.lowercased()
    }

    private static func object(in body: [UInt8]) throws(BodyProblem) -> BodyFields {
        guard let members = JSONValue.object(in: body)?.object else { throw .unreadable }
        return BodyFields(members)
    }

    /// A form's fields; one that is repeated becomes an array, which only a list may be.
    private static func form(_ request: ServerRequest) -> [String: JSONValue] {
        Dictionary(grouping: request.form, by: \.name).mapValues { fields in
            fields.count == 1 ? .string(fields[0].value) : .array(fields.map { .string($0.value) })
        }
    }
}
