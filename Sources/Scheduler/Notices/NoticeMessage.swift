package import Base
package import Crypto
package import HTTPClient
package import Storage
private import Telemetry

/// One notice as it is posted: a signed message about a user.
///
/// The headers and the signed content follow Standard Webhooks
/// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), for which receivers
/// find libraries: HMAC-SHA256 over the id, the time of sending and the body. The id stays the same for every delivery
/// of a notice, so that a receiver recognises repetitions.
package enum NoticeMessage {
    /// Returns the notice's body: ids, states and times, without secrets.
    package static func body(of notice: Notice) -> [UInt8] {
        var line = JSONLine()
        line.field("id", notice.id)
        line.field("type", notice.content.type)
        line.field("timestamp", notice.at.iso8601)
        line.object("data") { data in
            data.field("user_id", notice.userID)
            write(notice.content, to: &data)
        }
        return line.bytes
    }

    private static func write(_ content: Notice.Content, to data: inout JSONLine) {
        if let grant = content.grant { data.field("grant_id", grant.description) }
        switch content {
        case .connection(_, let from, let to, let reason):
            data.field("connected", to.isConnected)
            data.field("state", to.rawValue)
            if reason == .none { data.null("reason") } else { data.field("reason", reason.rawValue) }
            data.field("former_state", from.rawValue)
        case .lostScopes(_, let lost, let granted):
            data.array("lost_scopes") { array in
                for scope in lost.split(separator: " ") { array.element(String(scope)) }
            }
            data.array("granted_scopes") { array in
                for scope in granted.split(separator: " ") { array.element(String(scope)) }
            }
        case .sessionReused(let session): data.field("session_id", session.description)
        case .userDeleted: break
        }
    }

    /// Returns the request that delivers the notice at this instant.
    package static func request(for notice: Notice, to endpoint: Endpoint, key: MessageKey, at now: Timestamp)
        -> HTTPRequest
    {
        let body = body(of: notice)
        let seconds = "\(now.milliseconds / 1000)"
        let signed = Array("\(notice.id).\(seconds).".utf8) + body
        return HTTPRequest(
            method: .post,
            endpoint: endpoint,
            headers: [
                ("Content-Type", "application/json"), ("webhook-id", notice.id), ("webhook-timestamp", seconds),
                ("webhook-signature", "v1,\(base64(key.authenticate(signed)))"),
            ],
            body: HTTPBody(body)
        )
    }

    /// Returns standard Base64 with padding, as the specification requires.
    private static func base64(_ bytes: [UInt8]) -> String {
        let text = Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }
}
