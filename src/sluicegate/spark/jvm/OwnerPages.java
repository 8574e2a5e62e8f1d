package sluicegate;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;

/**
 * Protects the web pages of a cluster's daemons with a password (HTTP basic authentication).
 *
 * <p>The pages show the logs of executors, and loopback is open to every user of the machine.
 */
public final class OwnerPages implements Filter {
  private byte[] wanted;

  @Override
  public void init(FilterConfig config) throws ServletException {
    String password = config.getInitParameter("password");
    if (password == null || password.isEmpty()) {
      throw new ServletException("sluicegate.OwnerPages needs the parameter password");
    }
    byte[] pair = ("sluicegate:" + password).getBytes(StandardCharsets.UTF_8);
    wanted = ("Basic " + Base64.getEncoder().encodeToString(pair)).getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
      throws IOException, ServletException {
    String given = ((HttpServletRequest) request).getHeader("Authorization");
    // compared in constant time
    if (given != null && MessageDigest.isEqual(given.getBytes(StandardCharsets.UTF_8), wanted)) {
      chain.doFilter(request, response);
      return;
    }
    HttpServletResponse refused = (HttpServletResponse) response;
    refused.setHeader("WWW-Authenticate", "Basic realm=\"sluicegate cluster\"");
    refused.sendError(HttpServletResponse.SC_UNAUTHORIZED);
  }
}
