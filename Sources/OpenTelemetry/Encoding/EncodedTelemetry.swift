/// The body of a request, and what is in it.
package struct EncodedTelemetry: Sendable {
    package var body: [UInt8] = []
    /// The number of data points or spans in the body.
    package var items = 0
    /// The number of those that did not fit.
    package var dropped = 0
}
