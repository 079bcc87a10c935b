private import Glibc

/// The folder of the documents that help and errors refer to.
///
/// The texts call it `docs`, as in the sources. An installed program has its documents in `PREFIX/share/doc`.
package struct DocumentFolder: Equatable, Sendable {
    package static let sources = DocumentFolder(path: "docs")

    let path: String

    /// Returns a text with the paths at which the documents really are.
    package func located(_ text: String) -> String {
        text.replacing("docs/", with: path + "/")
    }

    /// Finds the documents of the program in a file such as `/usr/bin/refresh-worker`.
    static func of(program: String, isFolder: (String) -> Bool) -> DocumentFolder {
        let folders = program.split(separator: "/", omittingEmptySubsequences: true).dropLast()
        guard folders.last == "bin" else { return .sources }
        let path = folders.dropLast().map { "/" + $0 }.joined() + "/share/doc/refresh-worker"
        return isFolder(path) ? DocumentFolder(path: path) : .sources
    }

    /// The documents of the running program.
    package static var current: DocumentFolder {
        guard let resolved = unsafe realpath("/proc/self/exe", nil) else { return .sources }
        defer { unsafe free(resolved) }
        return of(program: unsafe String(cString: resolved)) { unsafe access($0, R_OK | X_OK) == 0 }
    }
}
