/// The parts that the requests of one kind share: method, URL and headers.
///
/// It is validated once, when it is made. An easy handle that carried a request of a lasting pattern stays prepared for
/// the next one. Everything in a lasting pattern therefore stays in memory, so it must not hold a secret.
package final class RequestPattern: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    package let method: Method
    /// The URL, possibly with a query.
    package let endpoint: Endpoint
    package let headers: [(String, String)]
    /// `true` if the pattern is used for many requests.
    let isLasting: Bool
    /// `true` if each header can be sent as it is: a line break in a value would start another header.
    let isSendable: Bool

    /// Makes a pattern for many requests; it must not hold a secret.
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
    /// The method, host and path.
    ///
    /// Queries and headers are left out because they carry tokens.
    package var description: String { "\(method.rawValue) \(endpoint)" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
