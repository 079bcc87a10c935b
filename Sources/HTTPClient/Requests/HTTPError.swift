private import CCurl

/// Why a request did not get a response.
///
/// A response with an error status is an ``HTTPResponse``, not a failure. No text here holds a secret: the messages are
/// libcurl's or this client's, which name hosts and ports but no queries, headers or bodies.
package struct HTTPError: Error, Sendable {
    package enum Kind: String, Hashable, Sendable {
        /// libcurl cannot parse the URL, although it is an ``Endpoint``.
        case invalidURL
        /// A header's name or value holds a character that cannot be sent.
        case invalidHeader
        /// The host's name, or the proxy's, has no address.
        case resolve
        case connect
        /// The TLS handshake failed, but not because of the certificate.
        case tls
        /// The server's certificate is not trusted or does not match the host.
        case certificate
        case timeout
        /// The connection broke while the request was being sent.
        case sendFailed
        /// The connection broke, or the server sent something other than HTTP, before the response was complete.
        case receiveFailed
        case bodyTooLarge
        case headersTooLarge
        /// The caller cancelled the request.
        case cancelled
        /// The client was shut down.
        case shutDown
        /// The caller's `beforeSend` returned `false`. Nothing was sent.
        case withheld
        /// The deadline passed while the request waited in this process. Nothing was sent.
        case expired
        case other
    }

    package let kind: Kind
    /// `true` if the request might have reached the server, so that a token in it might be spent although no response
    /// came.
    ///
    /// `false` guarantees that not one byte of the request was sent.
    package private(set) var outcomeUnknown = false
    /// libcurl's code (https://curl.se/libcurl/c/libcurl-errors.html), if libcurl reported the failure.
    private(set) var code: Int?
    package let message: String
    /// The part of the response that arrived before the failure: all headers, and the body up to the failure or the
    /// limit.
    ///
    /// A server that rotates refresh tokens has spent the old one when it responds, so the token in a broken response
    /// might be the only copy of the new one. Only a reader that distinguishes a complete value from a truncated one
    /// can use it.
    package private(set) var partialResponse: HTTPResponse?
}

extension HTTPError: CustomStringConvertible {
    package var description: String {
        let number = code.map { " (curl \($0))" } ?? ""
        return "\(kind.rawValue): \(message)\(number)\(outcomeUnknown ? ", the request might have arrived" : "")"
    }
}

extension HTTPError.Kind {
    /// Maps one of libcurl's codes (https://curl.se/libcurl/c/libcurl-errors.html).
    ///
    /// - Parameters:
    ///   - curlCode: the code that the transfer ended with.
    ///   - requestIssued: `true` if libcurl had begun to send the request. Every connection error is then a receive
    ///     failure, whatever its code.
    init(curlCode: UInt32, requestIssued: Bool) {
        switch CURLcode(curlCode) {
        case CURLE_OPERATION_TIMEDOUT:
            self = .timeout
        case CURLE_SEND_ERROR:
            self = .sendFailed
        case CURLE_URL_MALFORMAT:
            self = .invalidURL
        case CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION:
            self = .other
        case _ where requestIssued:
            self = .receiveFailed
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            self = .resolve
        case CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_INTERFACE_FAILED, CURLE_RECV_ERROR, CURLE_GOT_NOTHING:
            self = .connect
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
            self = .certificate
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
            CURLE_USE_SSL_FAILED, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ENGINE_INITFAILED:
            self = .tls
        default:
            self = .other
        }
    }
}
