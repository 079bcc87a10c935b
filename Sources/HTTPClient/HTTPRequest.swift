/// One request, as ``HTTPClient`` sends it.
package struct HTTPRequest: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    package var method: Method
    /// What an ``Endpoint`` accepts; it may end in a query.
    package var url: String
    package var headers: [(String, String)]
    package var body: HTTPBody?
    /// For requests to Amazon's services.
    package var signature: AWSSignature?

    package init(
        method: Method,
        url: String,
        headers: [(String, String)] = [],
        body: HTTPBody? = nil,
        signature: AWSSignature? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.signature = signature
    }

    /// Whether each header can be sent as it is: a line break in a value would start a header of the value's choice.
    var hasSendableHeaders: Bool {
        headers.allSatisfy { name, value in
            !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
                && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
        } && signature?.isSendable ?? true
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

extension HTTPRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Method, host and path: queries, headers and bodies carry tokens.
    package var description: String {
        do throws(EndpointError) {
            return "\(method.rawValue) \(try Endpoint(url))"
        } catch {
            return "\(method.rawValue) <\(error)>"
        }
    }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: []) }
}
