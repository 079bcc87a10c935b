import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The two forms of the backend's errors: `{"detail"}` and `{"error": {"code", "message"}}`.
private struct ErrorBody: Decodable {
    struct Named: Decodable {
        let code: String?
        let message: String?
    }

    let detail: String?
    let error: Named?
}

/// Decodes the backend's responses.
enum ResponseDecoder {
    /// Returns the value of a successful response, and throws for any other one, with `secrets` removed from the text.
    static func read<Value: Decodable>(
        _ type: Value.Type,
        from response: (data: Data, http: HTTPURLResponse),
        redacting secrets: [String] = []
    ) throws(AccountError) -> Value {
        let status = response.http.statusCode
        guard (200..<300).contains(status) else { throw refusal(status, response.data, redacting: secrets) }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = Self.date(text) else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an ISO 8601 date")
            }
            return date
        }
        do {
            return try decoder.decode(type, from: response.data)
        } catch {
            throw .unreadableResponse(status: status)
        }
    }

    private static func refusal(_ status: Int, _ data: Data, redacting secrets: [String]) -> AccountError {
        let body: ErrorBody
        do {
            body = try JSONDecoder().decode(ErrorBody.self, from: data)
        } catch {
            // The body is a proxy's page, or has another form: only the status is known.
            return .refused(status: status, code: nil, message: nil)
        }
        func clean(_ text: String?) -> String? {
            text.map { text in
                let cleaned = secrets.filter { !$0.isEmpty }.reduce(text) {
                    $0.replacingOccurrences(of: $1, with: "[token]")
                }
                return String(cleaned.prefix(200))
            }
        }
        return .refused(
            status: status,
            code: clean(body.error?.code),
            message: clean(body.detail ?? body.error?.message)
        )
    }

    /// Parses a time with or without a fraction, or a date alone.
    ///
    /// Without a zone it is UTC, as the backends of this API write it.
    static func date(_ text: String) -> Date? {
        var text = text
        if let dot = text.firstIndex(of: ".") {
            let rest = text[text.index(after: dot)...].drop { $0.isASCII && $0.isNumber }
            text = text[..<dot] + String(rest)
        }
        let formatter = ISO8601DateFormatter()
        return formatter.date(from: text) ?? formatter.date(from: text + "Z")
            ?? formatter.date(from: text + "T00:00:00Z")
    }
}
