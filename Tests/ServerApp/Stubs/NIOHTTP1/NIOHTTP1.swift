// What the examples use of swift-nio's HTTP, with its declarations, and with bodies for the tests.

/// A request's method.
package enum HTTPMethod: Hashable, Sendable {
    case GET
    case POST
    case RAW(value: String)
}

/// The fields of a head.
package struct HTTPHeaders: ExpressibleByDictionaryLiteral, Sendable {
    package private(set) var fields: [(name: String, value: String)]

    package init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { (name: $0.0, value: $0.1) }
    }

    package mutating func add(name: String, value: String) { fields.append((name: name, value: value)) }

    package func first(name: String) -> String? { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
}

/// A response's status.
package struct HTTPResponseStatus: Hashable, Sendable {
    package let code: UInt

    package init(statusCode: Int) { code = UInt(statusCode) }

    package static let ok = HTTPResponseStatus(statusCode: 200)
    package static let noContent = HTTPResponseStatus(statusCode: 204)
    package static let badRequest = HTTPResponseStatus(statusCode: 400)
    package static let unauthorized = HTTPResponseStatus(statusCode: 401)
    package static let conflict = HTTPResponseStatus(statusCode: 409)
    package static let serviceUnavailable = HTTPResponseStatus(statusCode: 503)
}
