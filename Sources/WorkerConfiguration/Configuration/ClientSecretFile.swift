package import Secrets

/// The secrets of confidential clients, by client id.
///
///     # a comment
///     first-client-id   its-secret
///     second-client-id  its-secret
///
/// With exactly one configured client id, a file may hold only its secret.
package enum ClientSecretFile {
    /// Parses the text of a file.
    ///
    /// An error names the line and never quotes it, because any word may be a secret.
    package static func secrets(
        in text: Secret,
        path: String,
        clientIDs: [String]
    ) throws(CommandFailure) -> [String: Secret] {
        let lines = text.allLines.enumerated().map { (number: $0.offset + 1, words: $0.element.words) }
            .filter { line in line.words.first.map { !$0.isComment } ?? false }
        guard let first = lines.first else {
            throw CommandFailure(.configuration, "\(flag): \(path) is empty: put the client's secret into it")
        }
        if let line = lines.first(where: { !$0.words.allSatisfy(\.isVisibleASCII) }) {
            throw fault(path, line.number, "holds a character that is not visible ASCII: retype it")
        }
        if lines.count == 1, first.words.count == 1 {
            guard clientIDs.count == 1 else {
                let count = clientIDs.isEmpty ? "no client id is" : "\(clientIDs.count) client ids are"
                throw fault(
                    path,
                    first.number,
                    """
                    holds a secret without its client id, and \(count) configured: write the client id, a blank and its \
                    secret, a line for each client id
                    """
                )
            }
            return [clientIDs[0]: first.words[0]]
        }
        var secrets: [String: Secret] = [:]
        for line in lines {
            guard line.words.count == 2 else {
                let count = line.words.count == 1 ? "1 word" : "\(line.words.count) words"
                throw fault(
                    path,
                    line.number,
                    "has \(count): each line is a client id, a blank and its secret; lines that begin with # are comments"
                )
            }
            guard let id = clientIDs.first(where: { Secret($0) == line.words[0] }) else {
                throw fault(
                    path,
                    line.number,
                    "does not begin with a configured client id: correct the id, or add it with --client-id"
                )
            }
            guard secrets.updateValue(line.words[1], forKey: id) == nil else {
                throw fault(
                    path,
                    line.number,
                    "is the second one for client id \(DisplayedText(id)): remove one of the two"
                )
            }
        }
        return secrets
    }

    package static let flag = "--client-secret-file"

    private static func fault(_ path: String, _ line: Int, _ complaint: String) -> CommandFailure {
        CommandFailure(.configuration, "\(flag): \(path), line \(line): \(complaint)")
    }
}
