private import CCurl

/// The libcurl that this process runs with.
package enum CurlLibrary {
    /// The version alone, from a text such as `libcurl/7.88.1 OpenSSL/3.0.17 zlib/1.2.13`.
    package static var version: String {
        let parts = unsafe String(cString: curl_version()).split(separator: " ")
        return parts.first.map { String($0.trimmingPrefix("libcurl/")) } ?? ""
    }

    /// The version of nghttp2, which frames HTTP/2 on the connections of this libcurl.
    package static var versionOfHTTP2Framing: String { HTTP2Library.version }
}
