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

    /// Makes the content of a configuration that does not name a file.
    init() {
        secrets = [:]
        unconfiguredClientIDs = []
        clientIDsWithoutSecret = []
    }

    /// Parses the text of a file.
    ///
    /// An error names the line and never quotes it, because any word might be a secret.
    init(parsing text: Secret, path: String, clientIDs: [String]) throws(CommandError) {
        let lines = text.allLines.enumerated().map { (number: $0.offset + 1, words: $0.element.words) }
            .filter { line in line.words.first.map { !$0.isComment } ?? false }
        guard let first = lines.first else {
            throw CommandError(.configuration, "\(Self.flag): \(path) is empty: put the client's secret into it")
        }
        if let line = lines.first(where: { !$0.words.allSatisfy(\.isVisibleASCII) }) {
            throw Self.fault(in: path, line: line.number, "holds a character that is not visible ASCII: retype it")
        }
        if lines.count == 1, first.words.count == 1 {
            guard clientIDs.count == 1 else {
                let count = clientIDs.isEmpty ? "no client id is" : "\(clientIDs.count) client ids are"
                throw Self.fault(
                    in: path,
                    line: first.number,
                    """
                    holds a secret without its client id, and \(count) configured: write the client id, a blank and its \
                    secret, a line for each client id
                    """
                )
            }
            secrets = [clientIDs[0]: first.words[0]]
            unconfiguredClientIDs = []
            clientIDsWithoutSecret = []
            return
        }
        var secrets: [String: Secret] = [:]
        var unconfigured: [String] = []
        for line in lines {
            guard line.words.count == 2 else {
                let count = line.words.count.counted("word")
                throw Self.fault(
                    in: path,
                    line: line.number,
                    "has \(count): each line is a client id, a blank and its secret; lines that begin with # are comments"
                )
            }
            let configured = clientIDs.first { Secret($0) == line.words[0] }
            guard let id = configured ?? Self.googleClientID(line.words[0]) else {
                throw Self.fault(
                    in: path,
                    line: line.number,
                    """
                    begins neither with a configured client id nor with one that ends in \
                    \(SettingValue.googleClientIDSuffix): correct the id, or add it with --client-id
                    """
                )
            }
            guard secrets.updateValue(line.words[1], forKey: id) == nil else {
                throw Self.fault(
                    in: path,
                    line: line.number,
                    "is the second one for client id \(DisplayedText(id)): remove one of the two"
                )
            }
            if configured == nil { unconfigured.append(id) }
        }
        self.secrets = secrets
        unconfiguredClientIDs = unconfigured
        clientIDsWithoutSecret = clientIDs.filter { secrets[$0] == nil }
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

    private static func list(_ ids: [String]) -> String {
        ids.map { "\(DisplayedText($0))" }.joined(separator: ", ")
    }

    /// Returns the word if it has the form of a Google client id, so that it is not a secret.
    private static func googleClientID(_ word: Secret) -> String? {
        let suffix = SettingValue.googleClientIDSuffix
        guard word.hasSuffix(suffix), word.count > suffix.utf8.count, word.count <= InputText.maximumClientIDLength
        else {
            return nil
        }
        return word.reveal()
    }

    private static func fault(in path: String, line: Int, _ complaint: String) -> CommandError {
        CommandError(.configuration, "\(flag): \(path), line \(line): \(complaint)")
    }
}
