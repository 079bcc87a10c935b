import Foundation
import WorkerTokens

/// A request that a backend got, as JSON on standard input: its headers, and its body as a text.
struct ReceivedNotice: Decodable {
    let headers: [String: String]
    let body: String

    /// Checks the notice, and returns what it says.
    static func read(secretFile: String) throws -> String {
        let request = try JSONDecoder().decode(Self.self, from: FileHandle.standardInput.readDataToEndOfFile())
        let verifier = try NoticeVerifier(secrets: try String(contentsOfFile: secretFile, encoding: .utf8))
        let notice = try verifier.notice(in: request.body.utf8) { name in
            request.headers.first { $0.key.lowercased() == name }?.value
        }
        return "\(notice.kind.rawValue) of \(notice.userID ?? "nobody"): \(notice.reason ?? "no reason")"
    }
}
