private import CNGHTTP2
internal import Crypto

extension HTTPTransfer {
    var unsentBytes: Int { bodyLength - stream.sentBodyBytes }

    var bodyLength: Int { request.body?.count ?? 0 }

    /// Moves the next bytes of the request's body into the output.
    func moveBody(_ count: Int, into output: inout ErasedBytes) {
        let start = stream.sentBodyBytes
        request.body?.withBytes { output.append($0.extracting(start..<(start + count))) }
        stream.sentBodyBytes = start + count
    }

    /// Returns the response, or the reason why there is none, once the stream has ended.
    func resultOfStream() -> Result<HTTPResponse, HTTPError> {
        if let abortFailure { return .failure(abortFailure) }
        switch stream.end {
        case .complete:
            guard let response = takeResponse() else { fallthrough }
            return .success(response)
        case nil, .cancelled:
            return .failure(failure(.receiveFailed, "the stream ended without a response"))
        case .reset(let code):
            let name = unsafe String(cString: nghttp2_http2_strerror(code))
            return .failure(failure(.receiveFailed, "the stream ended with \(name) before the response was complete"))
        }
    }
}
