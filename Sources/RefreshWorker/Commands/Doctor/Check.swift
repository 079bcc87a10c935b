import Base

/// One check of `doctor`: its name, its result, and the advice to fix a problem.
///
///     check("metrics log", orElse: "check the path") {
///         FileStatus.mayWrite(path) ? .ok("\(path) can be written") : .fault("\(path) cannot be written")
///     }
struct Check: Equatable, Sendable {
    enum Severity: String, Sendable {
        case ok
        /// It works, but a person should read it.
        case warning
        /// The worker cannot work, or not safely.
        case fault
    }

    let severity: Severity
    var name = ""
    /// The result in words.
    let finding: String
    /// The advice, or `nil` if the check is ok, or if the finding says it already.
    var advice: String?
    /// `true` if the cause might be the network or the remote server.
    var isAboutEndpoint = false

    static func ok(_ finding: String) -> Check { Check(severity: .ok, finding: finding) }

    static func warning(_ finding: String, advice: String? = nil) -> Check {
        Check(severity: .warning, finding: finding, advice: advice)
    }

    static func fault(_ finding: String, advice: String? = nil) -> Check {
        Check(severity: .fault, finding: finding, advice: advice)
    }

    func named(_ name: String) -> Check {
        var check = self
        check.name = name
        return check
    }

    /// Returns the same check of an endpoint.
    func ofEndpoint(_ name: String) -> Check {
        var check = named(name)
        check.isAboutEndpoint = true
        return check
    }
}

/// Makes a check.
///
/// An error is a fault: most say how to fix the problem, and `advice` does so for the others.
func check(_ name: String, orElse advice: String? = nil, _ body: () throws -> Check) -> Check {
    do {
        return try body().named(name)
    } catch {
        return .fault("\(error)", advice: advice).named(name)
    }
}

extension Check {
    /// The width of the column of names.
    private static let column = 22

    var text: String { finding + (advice.map { ": \($0)" } ?? "") }

    /// The check as one line, even if the text has several.
    func line(isColoured: Bool) -> String {
        // The colours are green, yellow and red (https://man7.org/linux/man-pages/man4/console_codes.4.html).
        let (label, colour) =
            switch severity {
            case .ok: ("ok", 32)
            case .warning: ("WARN", 33)
            case .fault: ("FAULT", 31)
            }
        let shown = isColoured ? "\u{1b}[\(colour)m\(label)\u{1b}[0m" : label
        let oneLine = text.split(whereSeparator: \.isNewline).joined(separator: "; ")
        return "\(shown)\("".padding(to: 7 - label.count))\(name.padding(to: Self.column))\(oneLine)"
    }
}

extension [Check] {
    private func count(_ severity: Check.Severity) -> Int { count { $0.severity == severity } }

    /// The exit code of `doctor`.
    ///
    /// Faults of endpoints alone might be temporary, so they have a code of their own.
    var exitCode: ExitCode {
        let faults = filter { $0.severity == .fault }
        if faults.isEmpty { return .success }
        return faults.allSatisfy(\.isAboutEndpoint) ? .peerUnreachable : .configuration
    }

    /// Adds all checks for programs.
    func write(to line: inout JSONLine, documents: DocumentFolder = .sources) {
        line.field("faults", count(.fault))
        line.field("warnings", count(.warning))
        line.objects("checks", self) { check, object in
            object.field("name", check.name)
            object.field("result", check.severity.rawValue)
            object.field("text", documents.located(check.finding))
            object.fieldOrNull("advice", check.advice.map(documents.located))
        }
    }

    var summary: String {
        guard count(.fault) + count(.warning) > 0 else { return "all \(count) checks are ok" }
        return "\(count) checks, \(count(.fault)) with a fault, \(count(.warning)) with a warning"
    }
}
