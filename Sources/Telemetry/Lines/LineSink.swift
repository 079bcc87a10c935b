package import Base

/// A destination for whole lines: a file, a pipe, or memory in a test.
package protocol LineSink: Sendable {
    /// Takes a line without making the caller wait.
    ///
    /// Returns `false` if the line is lost, or might be lost because the line before it was.
    @discardableResult
    func write(_ line: JSONLine) -> Bool

    /// Lines lost since the start.
    var droppedLines: Int { get }
    /// `true` while lines cannot be written.
    var isFailing: Bool { get }
}

extension LineSink {
    package var isFailing: Bool { false }
}
