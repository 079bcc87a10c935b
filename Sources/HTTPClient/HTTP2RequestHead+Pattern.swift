extension HTTP2RequestHead {
    /// Makes the fields of a pattern, the same as libcurl sends.
    convenience init(_ pattern: RequestPattern, userAgent: String) {
        var fields = [
            (name: ":method", value: pattern.method.rawValue),
            (name: ":path", value: pattern.endpoint.target),
            (name: ":scheme", value: pattern.endpoint.scheme.rawValue),
            (name: ":authority", value: pattern.endpoint.authority),
            (name: "user-agent", value: userAgent),
            (name: "accept", value: "*/*"),
        ]
        for (name, value) in pattern.headers {
            let name = name.lowercased()
            fields.removeAll { $0.name == name }
            fields.append((name, String(value.trimmingBlanks)))
        }
        if pattern.method == .post, !fields.contains(where: { $0.name == "content-type" }) {
            fields.append((name: "content-type", value: FormBody.contentType))
        }
        // Only a lasting pattern is known to hold no secret.
        self.init(fields, isSecret: !pattern.isLasting, hasBody: pattern.method == .post)
    }
}

extension String {
    /// HTTP/2 does not allow blanks around a value (https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1).
    fileprivate var trimmingBlanks: Substring {
        var value = self[...]
        while let first = value.first, first == " " || first == "\t" { value.removeFirst() }
        while let last = value.last, last == " " || last == "\t" { value.removeLast() }
        return value
    }
}
