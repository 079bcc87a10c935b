internal import Base

extension Resource {
    /// Returns the body of a request about this resource alone, measured by the worker as a single scope.
    ///
    /// Metrics and spans have the same form, under names of their own. `writeItems` adds the members of the scope.
    func envelope(
        resources: String,
        scopes: String,
        scopeVersion: String,
        writeItems: (inout JSONLine) -> Void
    ) -> [UInt8] {
        var line = JSONLine()
        line.array(resources) { list in
            list.object { line in
                write(to: &line)
                line.array(scopes) { list in
                    list.object { line in
                        Scope(version: scopeVersion).write(to: &line)
                        writeItems(&line)
                    }
                }
            }
        }
        return line.bytes
    }
}
