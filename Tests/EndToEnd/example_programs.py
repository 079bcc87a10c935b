"""Programs around the examples of docs/services-examples.md: each reads a user's mail once, and prints it or the error
that its library raised."""

import os
import subprocess

from accounts import SERVICE_KEY
from harness import Skipped
from oauth_libraries import EXAMPLES, documented

# The libraries that Debian packages for Java, and what they need.
JARS = [
    f"/usr/share/java/{name}.jar"
    for name in [
        "google-auth-library-credentials", "google-auth-library-oauth2-http", "google-http-client",
        "google-http-client-jackson2", "jackson-core", "guava", "opencensus-api", "opencensus-contrib-http-util",
        "grpc-context", "auto-value-annotations",
    ]
]

NODE = """
const { TOKEN_URL, SERVICE, CREDENTIAL, USER, GMAIL } = process.env;
LINES
try {
  const mail = await fetch(GMAIL, { headers: { authorization: `Bearer ${await accessToken()}` } });
  console.log(await mail.text());
} catch (error) {
  console.log(`${error.name} message=${error.message} status=${error.cause.status}`);
}
"""

JAVA = """
IMPORTS
class Service {
    public static void main(String[] arguments) {
        String TOKEN_URL = System.getenv("TOKEN_URL"), SERVICE = System.getenv("SERVICE");
        String CREDENTIAL = System.getenv("CREDENTIAL"), USER = System.getenv("USER");
        LINES
        try {
            var address = new com.google.api.client.http.GenericUrl(System.getenv("GMAIL"));
            System.out.println(session.buildGetRequest(address).execute().parseAsString());
        } catch (java.io.IOException error) {
            System.out.println("IOException " + error.getMessage());
        }
    }
}
"""

RUBY = """
require "open-uri"
TOKEN_URL, SERVICE, CREDENTIAL, USER = ENV.values_at("TOKEN_URL", "SERVICE", "CREDENTIAL", "USER")
LINES
begin
  puts URI.open(ENV["GMAIL"], "Authorization" => credentials.apply({})[:authorization]).read
rescue StandardError => error
  puts "#{error.class} #{error.message}"
end
"""

SWIFT = """
LINES

let environment = ProcessInfo.processInfo.environment
let TOKEN_URL = environment["TOKEN_URL"]!, SERVICE = environment["SERVICE"]!
let CREDENTIAL = environment["CREDENTIAL"]!, USER = environment["USER"]!
do {
    var request = URLRequest(url: URL(string: environment["GMAIL"]!)!)
    request.setValue("Bearer \\(try await accessToken())", forHTTPHeaderField: "Authorization")
    print(String(decoding: try await URLSession.shared.data(for: request).0, as: UTF8.self))
} catch {
    print(error)
}
"""

SHELL = """
USER_ID=$USER
answer=$(LINES) || { echo "exit code $? $answer"; exit; }
curl -sS -H "Authorization: Bearer $(printf %s "$answer" | jq -r .access_token)" "$GMAIL"
"""


def programs(folder):
    """Returns the command of each example."""
    (folder / "login.curl").write_text(f'user = "mailer:{SERVICE_KEY}"\n')
    lines = documented("Java: google-auth-library").splitlines()
    java = JAVA.replace("IMPORTS", "\n".join(line for line in lines if line.startswith("import ")))
    write(folder / "Service.java", java, "\n".join(line for line in lines if not line.startswith("import ")))
    write(folder / "service.mjs", NODE, documented("Node: fetch"))
    write(folder / "service.rb", RUBY, documented("Ruby: googleauth"))
    write(folder / "service.sh", SHELL, documented("Shell: curl").strip())
    write(folder / "main.swift", SWIFT, documented("Swift: Foundation"))
    run("swiftc", "-o", folder / "service", folder / "main.swift")
    return {
        "Java: google-auth-library": ["java", "-cp", ":".join(JARS), folder / "Service.java"],
        "Node: fetch": ["node", folder / "service.mjs"],
        "googleauth": ["ruby", folder / "service.rb"],
        "Foundation": [folder / "service"],
        "curl": ["sh", folder / "service.sh"],
    }


def write(path, program, lines):
    path.write_text(program.replace("LINES", lines))


def run(*command, **more):
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, **more)
    except FileNotFoundError as error:
        raise Skipped(f"{error.filename} is missing: scripts/ensure-packages check installs it") from None
    assert result.returncode == 0, f"{command[0]} runs the example: {result.stdout}{result.stderr}"
    return result.stdout


def read_mail(command, folder, environment):
    """Returns the mail, or the error."""
    return run(*command, cwd=folder, env={**os.environ, **environment})


def documented_errors():
    """The two cells about errors of each row of the document: for a user who is gone, and for 503."""
    table = EXAMPLES.read_text().split("\n## Errors\n", 1)[1]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows if len(row) == 3}
