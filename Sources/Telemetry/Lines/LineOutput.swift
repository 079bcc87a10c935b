internal import Base

/// The file that lines are written to, followed by its name, with the state of its failure reports.
struct LineOutput: ~Copyable {
    private let destination: LineDestination
    private let time: any TimeSource
    private let diagnostics: DiagnosticLog
    private var file: LineFile
    private var lastCheck: BootInstant
    private var lost = 0
    private var hasReportedReopening = false

    init(
        _ destination: LineDestination,
        time: any TimeSource,
        diagnostics: DiagnosticLog
    ) throws(FileError) {
        self.destination = destination
        self.time = time
        self.diagnostics = diagnostics
        file = try LineFile(destination)
        lastCheck = time.sinceBoot
    }

    /// The lines that are done with.
    struct Outcome {
        /// Written or lost.
        var done = 0
        var lost = 0
        /// `true` if the last of them was lost.
        var isFailing = false
    }

    /// Writes lines of a block from `first` on, as many as one `write` can take. The diagnostic log reports the first
    /// loss and the end of the losses.
    mutating func write(_ block: LineBlock, from first: Int) -> Outcome {
        followName()
        let lines = block.lines(from: first, upToBytes: file.maximumWrite)
        var outcome = Outcome()
        while outcome.done < lines.count {
            let written = file.append(lines.dropFirst(outcome.done), of: block)
            if written.lines > 0 { reportRecovery() }
            outcome.done += written.lines
            outcome.isFailing = written.failure != nil
            guard let failure = written.failure else { break }
            if lost == 0 { diagnostics.error("lines are being lost", ["reason": failure.description]) }
            lost += 1
            outcome.done += 1
            outcome.lost += 1
        }
        return outcome
    }

    private mutating func reportRecovery() {
        guard lost > 0 else { return }
        diagnostics.notice("lines are written again", ["lost": lost.description])
        lost = 0
    }

    /// Opens the file again by its name.
    ///
    /// If that fails, lines continue to go into the file that is open.
    mutating func reopen() {
        guard case .file = destination else { return }
        lastCheck = time.sinceBoot
        do {
            file = try LineFile(destination)
            hasReportedReopening = false
        } catch {
            if !hasReportedReopening {
                diagnostics.error("a file of lines cannot be reopened", ["reason": error.description])
            }
            hasReportedReopening = true
        }
    }

    static let nameCheckInterval: Duration = .seconds(1)

    /// Checks now and then if the file was moved or removed.
    private mutating func followName() {
        guard case .file(let path) = destination, time.sinceBoot - lastCheck >= Self.nameCheckInterval else { return }
        lastCheck = time.sinceBoot
        if FileIdentity(path: path) != file.identity { reopen() }
    }
}
