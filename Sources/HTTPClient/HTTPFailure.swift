/// Why a request has no answer.
///
/// A status that the caller dislikes is no failure: it comes as an ``HTTPResponse``. No text here holds a secret: the
/// words are libcurl's, which names hosts and ports and neither queries, headers nor bodies.
package struct HTTPFailure: Error, Sendable {
    package enum Kind: String, Hashable, Sendable {
        /// libcurl cannot read the URL, though it is an ``Endpoint``.
        case invalidURL
        /// A header's name or value holds a character that cannot be sent.
        case invalidHeader
        /// The host's name, or the proxy's, has no address.
        case resolve
        case connect
        /// No TLS connection, for another reason than the certificate.
        case tls
        /// The server's certificate is not trusted or not for this host.
        case certificate
        case timeout
        /// The connection broke while the request was being sent.
        case sendFailed
        /// The connection broke, or what came was no HTTP, before the answer was complete.
        case receiveFailed
        case bodyTooLarge
        case headersTooLarge
        /// Whoever asked for it gave it up.
        case cancelled
        /// The client was shut down.
        case shutDown
        /// The caller's `beforeSend` said no; nothing was sent.
        case withheld
        /// The deadline passed while the request waited in this process; nothing was sent, and the server was not asked.
        case expired
        case other
    }

    package let kind: Kind
    /// Whether the request may have reached the server, so that a token in it may be spent although no answer came.
    ///
    /// False means that not one byte of the request left.
    package let outcomeUnknown: Bool
    /// libcurl's code (https://curl.se/libcurl/c/libcurl-errors.html), where libcurl is what failed.
    package let code: Int?
    package let message: String
    /// The part of the answer that arrived before the failure: all headers, and the body up to the failure or the limit.
    ///
    /// A server that rotates refresh tokens has spent the old one when it answers, so the token in a broken answer may be
    /// the only copy of the new one. Only a reader that can tell a complete value from a cut one may use it.
    package let partialAnswer: HTTPResponse?

    init(
        kind: Kind,
        outcomeUnknown: Bool = false,
        code: Int? = nil,
        message: String,
        partialAnswer: HTTPResponse? = nil
    ) {
        self.kind = kind
        self.outcomeUnknown = outcomeUnknown
        self.code = code
        self.message = message
        self.partialAnswer = partialAnswer
    }
}

extension HTTPFailure: CustomStringConvertible {
    package var description: String {
        let number = code.map { " (curl \($0))" } ?? ""
        return "\(kind.rawValue): \(message)\(number)\(outcomeUnknown ? ", the request may have arrived" : "")"
    }
}
