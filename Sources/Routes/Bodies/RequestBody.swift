internal import Base
internal import HTTPServer

/// The body of a request as named values, from JSON or a form.
enum RequestBody {
    /// Reads an object from JSON.
    static func json(_ request: ServerRequest) throws(RequestBodyError) -> BodyFields {
        guard request.declaresBody else { throw .undeclared }
        guard request.mediaType == "application/json" else { throw .unsupportedMediaType }
        return try object(in: request.body)
    }

    /// Reads an object from JSON, or the fields of a form.
    static func jsonOrForm(_ request: ServerRequest) throws(RequestBodyError) -> BodyFields {
        guard request.declaresBody else { throw .undeclared }
        switch request.mediaType {
        case "application/json": return try object(in: request.body)
        case "application/x-www-form-urlencoded": return BodyFields(form(request))
        default: throw .unsupportedMediaType
        }
    }

    private static func object(in body: [UInt8]) throws(RequestBodyError) -> BodyFields {
        guard let members = JSONValue.object(in: body)?.object else { throw .unreadable }
        return BodyFields(members)
    }

    /// Returns a form's fields; a repeated field becomes an array, which is valid only for a list.
    private static func form(_ request: ServerRequest) -> [String: JSONValue] {
        Dictionary(grouping: request.form, by: \.name).mapValues { fields in
            fields.count == 1 ? .string(fields[0].value) : .array(fields.map { .string($0.value) })
        }
    }
}

extension ServerRequest {
    /// The type of the body without its parameters, in lower case.
    var mediaType: String? {
        guard let type = header("Content-Type")?.split(separator: ";").first else { return nil }
        return type.filter { $0 != " " && $0 != "\t" }.lowercased()
    }
}
