import Base
import Crypto

/// The secrets of confidential clients, by client id.
///
///     # a comment
///     first-client-id   its-secret
///     second-client-id  its-secret
///
/// With exactly one configured client id, a file can hold only its secret. A line can begin with a Google client id
/// that is not configured: stored grants of that client still need the secret.
struct ClientSecretFile: Sendable {
    static let flag = "--client-secret-file"

    let secrets: [String: Secret]
    /// The client ids in the file that are not configured, in the order of their lines.
    let unconfiguredClientIDs: [String]
    /// The configured client ids that the file does not name, one of which might be mistyped in it.
    let clientIDsWithoutSecret: [String]

    private init(secrets: [String: Secret], unconfiguredClientIDs: [String], clientIDsWithoutSecret: [String]) {
        self.secrets = secrets
        self.unconfiguredClientIDs = unconfiguredClientIDs
        self.clientIDsWithoutSecret = clientIDsWithoutSecret
    }
}

extension ClientSecretFile {
    /// Makes the content of a configuration that does not name a file.
    init() {
        self.init(secrets: [:], unconfiguredClientIDs: [], clientIDsWithoutSecret: [])
    }

    /// Parses the text of a file.
    ///
    /// An error names the line and never quotes it, because any word might be a secret.
    init(parsing text: Secret, path: String, clientIDs: [String]) throws(CommandError) {
        let lines = Self.lines(of: text)
        guard let first = lines.first else {
            throw CommandError(.configuration, "\(Self.flag): \(path) is empty: put the client's secret into it")
        }
        if let line = lines.first(where: { !$0.words.allSatisfy(\.isVisibleASCII) }) {
            throw Self.fault(in: path, line: line, "holds a character that is not visible ASCII: retype it")
        }
        if lines.count == 1, first.words.count == 1 {
            try self.init(secretIn: first, path: path, clientIDs: clientIDs)
        } else {
            try self.init(pairsIn: lines, path: path, clientIDs: clientIDs)
        }
    }

    /// Reads a file that holds the secret of the only configured client.
    private init(secretIn line: Line, path: String, clientIDs: [String]) throws(CommandError) {
        guard clientIDs.count == 1 else {
            let count = clientIDs.isEmpty ? "no client id is" : "\(clientIDs.count) client ids are"
            throw Self.fault(
                in: path,
                line: line,
                """
                holds a secret without its client id, and \(count) configured: write the client id, a blank and its \
                secret, a line for each client id
                """
            )
        }
        self.init(secrets: [clientIDs[0]: line.words[0]], unconfiguredClientIDs: [], clientIDsWithoutSecret: [])
    }

    private init(pairsIn lines: [Line], path: String, clientIDs: [String]) throws(CommandError) {
        var secrets: [String: Secret] = [:]
        var unconfigured: [String] = []
        for line in lines {
            guard line.words.count == 2 else {
                let count = line.words.count.counted("word")
                throw Self.fault(
                    in: path,
                    line: line,
                    "has \(count): each line is a client id, a blank and its secret; lines that begin with # are comments"
                )
            }
            let configured = clientIDs.first { Secret($0) == line.words[0] }
            guard let id = configured ?? Self.googleClientID(line.words[0]) else {
                throw Self.fault(
                    in: path,
                    line: line,
                    """
                    begins neither with a configured client id nor with one that ends in \
                    \(SettingValue.googleClientIDSuffix): correct the id, or add it with --client-id
                    """
                )
            }
            guard secrets.updateValue(line.words[1], forKey: id) == nil else {
                throw Self.fault(
                    in: path,
                    line: line,
                    "is the second one for client id \(DisplayedText(id)): remove one of the two"
                )
            }
            if configured == nil { unconfigured.append(id) }
        }
        self.init(
            secrets: secrets,
            unconfiguredClientIDs: unconfigured,
            clientIDsWithoutSecret: clientIDs.filter { secrets[$0] == nil }
        )
    }

    /// The ids that are not configured, and the advice, or `nil` if all are configured.
    var warning: String? {
        guard !unconfiguredClientIDs.isEmpty else { return nil }
        let missing =
            clientIDsWithoutSecret.isEmpty
            ? "" : ". It has no secret for \(Self.list(clientIDsWithoutSecret)): check that no id in it is mistyped"
        return """
            holds secrets of client ids that are not configured, which are used for their stored grants: \
            \(Self.list(unconfiguredClientIDs)). Add the ids with --client-id, or remove their lines once no grant of theirs is \
            stored\(missing)
            """
    }

    /// A line that is neither empty nor a comment.
    private struct Line {
        let number: Int
        let words: [Secret]
    }

    private static func lines(of text: Secret) -> [Line] {
        text.allLines.enumerated().compactMap { offset, line in
            let words = line.words
            guard let first = words.first, !first.isComment else { return nil }
            return Line(number: offset + 1, words: words)
        }
    }

    private static func list(_ ids: [String]) -> String {
        ids.map { "\(DisplayedText($0))" }.joined(separator: ", ")
    }

    /// Returns the word if it has the form of a Google client id, so that it is not a secret.
    private static func googleClientID(_ word: Secret) -> String? {
        let suffix = SettingValue.googleClientIDSuffix
        guard word.hasSuffix(suffix) else { return nil }
        guard word.count > suffix.utf8.count, word.count <= InputText.maximumClientIDLength else { return nil }
        return word.reveal()
    }

    private static func fault(in path: String, line: Line, _ complaint: String) -> CommandError {
        CommandError(.configuration, "\(flag): \(path), line \(line.number): \(complaint)")
    }
}
