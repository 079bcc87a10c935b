package import Base
package import Crypto
package import HTTPClient
import Storage

/// A notice as it is posted: a signed message about a user.
///
/// The headers and the signed content follow Standard Webhooks
/// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), for which receivers
/// find libraries: HMAC-SHA256 over the id, the time of sending and the body. The id stays the same for every delivery
/// of a notice, so that a receiver recognises repetitions.
extension Notice {
    /// The body: ids, states and times, without secrets.
    var body: [UInt8] {
        var line = JSONLine()
        line.field("id", id.description)
        line.field("type", content.type)
        line.field("timestamp", at.iso8601)
        line.object("data") { data in
            data.field("user_id", userID)
            Self.write(content, to: &data)
        }
        return line.bytes
    }

    private static func write(_ content: Notice.Content, to data: inout JSONLine) {
        if let subject = content.subject {
            data.field("grant_id", subject.grant.description)
            data.field("connection", subject.connection.description)
            if !subject.labels.isEmpty { subject.labels.write(to: &data, as: "labels") }
        }
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
        case .expiring(_, let end): data.field("expires_at", end.iso8601)
        case .sessionReused(let session): data.field("session_id", session.description)
        case .userDeleted: break
        }
    }

    /// Returns the request that delivers the notice at this instant.
    func request(to endpoint: Endpoint, keys: [MessageKey], at now: Timestamp) -> HTTPRequest {
        .notice(id.description, body: body, trace: trace, to: endpoint, keys: keys, at: now)
    }
}

extension HTTPRequest {
    /// Returns a signed message, with one signature for each key.
    ///
    /// The trace is a header, where the receiver's own tracing looks for it, and so it is not signed.
    fileprivate static func notice(
        _ id: String,
        body: [UInt8],
        trace: TraceContext?,
        to endpoint: Endpoint,
        keys: [MessageKey],
        at now: Timestamp
    ) -> HTTPRequest {
        let seconds = "\(now.milliseconds / 1000)"
        let signed = Array("\(id).\(seconds).".utf8) + body
        let signatures = keys.map { "v1,\(Base64.encode($0.authenticate(signed)))" }
        var headers = [
            ("Content-Type", "application/json"), ("webhook-id", id), ("webhook-timestamp", seconds),
            ("webhook-signature", signatures.joined(separator: " ")),
        ]
        if let trace { headers.append(("traceparent", trace.traceparent)) }
        return HTTPRequest(method: .post, endpoint: endpoint, headers: headers, body: HTTPBody(body))
    }
}

extension HTTPClient {
    /// Posts a notice of the type `test`, which is about no user, and returns the receiver's status. It is not in the
    /// outbox, so it is neither repeated nor replayed.
    package func postTestNotice(
        _ id: String,
        to endpoint: Endpoint,
        keys: [MessageKey],
        at now: Timestamp
    ) async throws(HTTPError) -> Int {
        var line = JSONLine()
        line.field("id", id)
        line.field("type", "test")
        line.field("timestamp", now.iso8601)
        line.object("data") { _ in }
        let request = HTTPRequest.notice(id, body: line.bytes, trace: nil, to: endpoint, keys: keys, at: now)
        return try await send(request, deadline: NoticeDispatcher.deadline).status
    }
}
