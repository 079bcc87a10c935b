private import CCurl

extension HTTPFailure.Kind {
    /// Maps one of libcurl's codes (https://curl.se/libcurl/c/libcurl-errors.html).
    ///
    /// - Parameters:
    ///   - curlCode: the code that the transfer ended with.
    ///   - requestIssued: `true` if libcurl had begun to send the request. Every connection error is then a receive
    ///     failure, whatever its code.
    package init(curlCode: UInt32, requestIssued: Bool) {
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
