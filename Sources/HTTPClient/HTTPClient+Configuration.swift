extension HTTPClient {
    /// The timeouts, limits and certificate authorities of a client.
    package struct Configuration: Sendable {
        /// The time limit for DNS, TCP and TLS together.
        package var connectDeadline: Duration = .seconds(5)
        /// The time limit for a request, counted from `send`; its wait in the queue is included.
        package var totalDeadline: Duration = .seconds(15)
        /// A PEM file of the certificates to trust instead of the system's.
        package var caFile: String?
        package var maximumBodyBytes = 65536
        package var maximumHeaderBytes = 65536
        /// The number of requests that libcurl handles at once; further requests wait in first-in, first-out order.
        package var maximumInFlight: Int
        /// The maximum number of connections to one host and port.
        ///
        /// A number below `maximumInFlight` works well only if the server speaks HTTP/2: over HTTP/1.1 libcurl would
        /// hold back the excess requests itself and count their wait as connect time.
        package var maximumConnections: Int
        package var userAgent = "refresh-worker"
        /// `true` if HTTP/2 is offered; it is only used over TLS.
        package var http2 = true
        /// The library that frames HTTP/2.
        package var http2Framing = HTTP2Framing.nghttp2

        /// libcurl can carry HTTP/2 too; tests hold both ways to the same rules.
        package enum HTTP2Framing: Sendable, CaseIterable {
            case nghttp2
            case libcurl
        }

        /// Sets as many connections as requests in flight, which HTTP/1.1 needs.
        package init(maximumInFlight: Int = 64) {
            self.maximumInFlight = maximumInFlight
            maximumConnections = maximumInFlight
        }

        /// The maximum number of connections to one host and port until a response comes over HTTP/1.1.
        ///
        /// libcurl opens a connection for every request that finds no free stream, although one more connection would
        /// serve a hundred requests (https://curl.se/libcurl/c/CURLOPT_PIPEWAIT.html waits only for the first
        /// connection). Most servers allow 100 streams or more per connection; 50 are enough here.
        var connectionsOverHTTP2: Int {
            http2 ? min(maximumConnections, max(4, (maximumInFlight + 49) / 50)) : maximumConnections
        }

        /// The maximum number of connections to one host and port in libcurl until a response comes over HTTP/1.1.
        ///
        /// At the limit, libcurl 7.88 closes a connection that it has just made for ``HTTP2Transport``, to make room
        /// for another. So there is room for the connections that only finish their requests: each has one in flight.
        var connectionsInLibcurl: Int {
            http2 && http2Framing == .nghttp2 ? connectionsOverHTTP2 + maximumInFlight : connectionsOverHTTP2
        }
    }
}
