internal import Base
internal import HTTPServer

extension ServerResponse {
    /// Returns a success as PayPulse's app reads it: a message for people, the status, and data.
    static func success(
        _ message: String,
        status: Int = 200,
        data: (inout JSONLine) -> Void = { _ in }
    ) -> ServerResponse {
        .object(status: status) { line in
            line.field("message", message)
            line.field("code", status)
            line.object("data", data)
        }
    }
}
