/// What the requests of one kind have in common: the method, the address and the headers.
///
/// It is looked through once, when it is made. An easy handle that carried a request of a lasting pattern stays prepared
/// for the next one, so what a lasting pattern holds stays in memory: it has no secret.
package final class RequestPattern: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    package let method: Method
    /// It may end in a query.
    package let endpoint: Endpoint
    package let headers: [(String, String)]
    /// Whether the pattern is made for many requests.
    let isLasting: Bool
    /// Whether each header can be sent as it is: a line break in a value would start a header of the value's choice.
    let isSendable: Bool

    /// A pattern for many requests, without a secret in it.
    package convenience init(method: Method, endpoint: Endpoint, headers: [(String, String)]) {
        self.init(method: method, endpoint: endpoint, headers: headers, isLasting: true)
    }

    init(method: Method, endpoint: Endpoint, headers: [(String, String)], isLasting: Bool) {
        self.method = method
        self.endpoint = endpoint
        self.headers = headers
        self.isLasting = isLasting
        isSendable = headers.allSatisfy { name, value in
            !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
                && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        }
    }

    /// The characters of a header's name (https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2).
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default:
            "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension RequestPattern: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Method, host and path: queries and headers carry tokens.
    package var description: String { "\(method.rawValue) \(endpoint)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
